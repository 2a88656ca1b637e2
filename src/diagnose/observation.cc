#include "diagnose/observation.h"

namespace falcon::diagnose {

const char* nameOf(Quantity quantity) {
  switch (quantity) {
    case Quantity::ownTime:
      return "own time";
    case Quantity::computeTest:
      return "compute test";
    case Quantity::heldBack:
      return "held back";
    case Quantity::gpuTest:
      return "GPU test";
    case Quantity::transferTime:
      return "transfer time";
    case Quantity::linkTest:
      return "link test";
    case Quantity::blockedTime:
      return "blocked time";
    case Quantity::groupTime:
      return "group time";
  }
  return "?";
}

Source sourceOf(Quantity quantity) {
  switch (quantity) {
    case Quantity::ownTime:
    case Quantity::transferTime:
    case Quantity::blockedTime:
    case Quantity::groupTime:
      return Source::passive;
    case Quantity::heldBack:
      return Source::kernel;
    case Quantity::computeTest:
    case Quantity::gpuTest:
    case Quantity::linkTest:
      break;
  }
  return Source::test;
}

bool isOfLinks(Quantity quantity) {
  return quantity == Quantity::transferTime || quantity == Quantity::linkTest || quantity == Quantity::blockedTime;
}

}  // namespace falcon::diagnose
