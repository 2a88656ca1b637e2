#include "reshape/checkpoint_part.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/log.h"
#include "reshape/checksum.h"

namespace falcon::reshape {
namespace {

constexpr std::size_t pieceBytes = std::size_t{4} << 20;
constexpr std::uint64_t mostManifestBytes = 64 << 20;

std::string stateFile(const std::string& folder, std::uint64_t iteration, const std::string& part) {
  return folderOf(folder, iteration) + "/" + part + ".state";
}
std::string manifestFile(const std::string& folder, std::uint64_t iteration, const std::string& part) {
  return folderOf(folder, iteration) + "/" + part + ".manifest";
}
std::string draftOf(const std::string& path) {
  return path + ".draft";
}

/// Under a draft's name, then under its own; `fill` writes.
Status writeFile(Storage& storage, const std::string& path, const std::function<Status(Storage::Draft&)>& fill) {
  {
    auto draft = storage.create(draftOf(path));
    if (!draft) return draft.error();
    if (const Status written = fill(**draft); !written) return written;
    if (const Status synced = (*draft)->sync(); !synced) return synced;
  }
  return storage.rename(draftOf(path), path);
}

Result<Manifest> readManifest(Storage& storage, const std::string& folder, std::uint64_t iteration,
                              const std::string& part) {
  const std::string path = manifestFile(folder, iteration, part);
  const auto size = storage.size(path);
  if (!size) return size.error();
  if (*size > mostManifestBytes) return Error::invalidArgument("{} is no manifest: it has {} bytes", path, *size);
  std::string text(*size, '\0');
  if (const Status read = storage.read(path, 0, std::as_writable_bytes(std::span(text))); !read) return read.error();
  auto manifest = decodeManifest(text);
  if (!manifest) return Error::invalidArgument("{}: {}", path, manifest.error().message());
  return manifest;
}

/// Why this part is not what is registered here; empty: it is.
std::string difference(const Manifest& manifest, std::uint64_t iteration, std::span<const StateBuffer> buffers,
                       const Place& place, const std::string& part) {
  if (manifest.iteration != iteration) return fmt::format("it is of iteration {}", manifest.iteration);
  if (part == ownPart(place) && manifest.ranks != place.ranks)
    return fmt::format("a job of {} ranks wrote it, this one has {}", manifest.ranks, place.ranks);
  if (manifest.pipelineSize != place.pipelineSize || manifest.tensorSize != place.tensorSize)
    return fmt::format("its job had {} stages of {} shards, this one has {} of {}", manifest.pipelineSize,
                       manifest.tensorSize, place.pipelineSize, place.tensorSize);
  if (manifest.buffers.size() != buffers.size())
    return fmt::format("it has {} buffers, {} are registered", manifest.buffers.size(), buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (manifest.buffers[i].name != buffers[i].name || manifest.buffers[i].bytes != buffers[i].bytes)
      return fmt::format("it has {} of {} bytes where {} of {} is registered", manifest.buffers[i].name,
                         manifest.buffers[i].bytes, buffers[i].name, buffers[i].bytes);
  return "";
}

/// Reads the buffers of a part one after the other, in pieces: into `targets` where there are any, else into a scratch.
Status readState(Storage& storage, const std::string& path, const Manifest& manifest,
                 std::span<const StateBuffer> targets) {
  std::vector<std::byte> scratch;
  if (targets.empty()) scratch.resize(std::min<std::uint64_t>(pieceBytes, manifest.bytes()));
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < manifest.buffers.size(); ++i) {
    const Manifest::Buffer& buffer = manifest.buffers[i];
    Checksum checksum;
    for (std::uint64_t done = 0; done < buffer.bytes;) {
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(pieceBytes, buffer.bytes - done));
      const std::span<std::byte> into =
          targets.empty() ? std::span(scratch).first(piece) : targets[i].span().subspan(done, piece);
      if (const Status read = storage.read(path, offset + done, into); !read) return read;
      checksum.add(into);
      done += piece;
    }
    offset += buffer.bytes;
    if (checksum.value() != buffer.checksum)
      return Error::system("{} was changed: the checksum of {} is {:016x} and was {:016x}", path, buffer.name,
                           checksum.value(), buffer.checksum);
  }
  return {};
}

}  // namespace

void stage(std::span<const StateBuffer> buffers, const Place& place, const Found& as, std::string name,
           StagedPart& staged) {
  const std::size_t bytes = bytesOf(buffers);
  if (staged.capacity < bytes) {
    staged.content.reset();
    staged.capacity = 0;
    staged.content = std::make_unique_for_overwrite<std::byte[]>(bytes);
    staged.capacity = bytes;
  }
  staged.name = std::move(name);
  staged.manifest = {as.iteration, place.ranks, place.pipelineSize, place.tensorSize, as.run, {}};
  std::byte* to = staged.content.get();
  for (const StateBuffer& buffer : buffers) {
    staged.manifest.buffers.push_back({buffer.name, buffer.bytes, 0});
    std::memcpy(to, buffer.data, buffer.bytes);
    to += buffer.bytes;
  }
}

Status write(Storage& storage, const std::string& folder, StagedPart& staged) {
  const std::uint64_t iteration = staged.manifest.iteration;
  const std::string own = folderOf(folder, iteration), manifest = manifestFile(folder, iteration, staged.name);
  if (const Status made = storage.makeFolder(own); !made) return made;
  // One of this iteration may be there, from before a restart: without its manifest it does not count while its state
  // is replaced.
  if (storage.size(manifest)) {
    if (const Status removed = storage.remove(manifest); !removed) return removed;
    if (const Status synced = storage.syncFolder(own); !synced) return synced;
  }
  Status done = writeFile(storage, stateFile(folder, iteration, staged.name), [&](Storage::Draft& draft) -> Status {
    const std::byte* from = staged.content.get();
    for (Manifest::Buffer& buffer : staged.manifest.buffers) {
      Checksum checksum;
      for (std::uint64_t written = 0; written < buffer.bytes;) {
        const std::span piece(from, std::min<std::uint64_t>(pieceBytes, buffer.bytes - written));
        checksum.add(piece);
        if (const Status put = draft.write(piece); !put) return put;
        from += piece.size();
        written += piece.size();
      }
      buffer.checksum = checksum.value();
    }
    return {};
  });
  if (done) done = storage.syncFolder(own);
  if (done)
    done = writeFile(storage, manifest, [&](Storage::Draft& draft) {
      const std::string text = encode(staged.manifest);
      return draft.write(std::as_bytes(std::span(text)));
    });
  if (done) done = storage.syncFolder(own);
  if (done) done = storage.syncFolder(folder);
  return done;
}

bool hasPart(Storage& storage, const std::string& folder, std::uint64_t iteration, const std::string& part) {
  return static_cast<bool>(storage.size(manifestFile(folder, iteration, part)));
}

Result<std::vector<Found>> iterationsOf(Storage& storage, const std::string& folder, const std::string& part,
                                        std::span<const StateBuffer> buffers, const Place& place,
                                        const std::function<void(const std::string&)>& refused) {
  const auto names = storage.list(folder);
  if (!names) return names.error();
  std::vector<Found> found;
  for (const std::string& name : *names) {
    const auto iteration = iterationOf(name);
    if (!iteration) continue;
    const auto size = storage.size(stateFile(folder, *iteration, part));
    if (!size || !hasPart(storage, folder, *iteration, part)) continue;  // incomplete
    const auto manifest = readManifest(storage, folder, *iteration, part);
    const std::string problem =
        manifest ? difference(*manifest, *iteration, buffers, place, part) : manifest.error().message();
    if (problem.empty() && *size == manifest->bytes())
      found.emplace_back(*iteration, manifest->run);
    else
      refused(fmt::format("{} of iteration {} does not count: {}", part, *iteration,
                          problem.empty() ? "its state has another length" : problem));
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

Status verify(Storage& storage, const std::string& folder, std::uint64_t iteration, const std::string& part) {
  const auto manifest = readManifest(storage, folder, iteration, part);
  if (!manifest) return manifest.error();
  return readState(storage, stateFile(folder, iteration, part), *manifest, {});
}

Status load(Storage& storage, const std::string& folder, std::uint64_t iteration, const std::string& part,
            std::span<const StateBuffer> buffers) {
  const auto manifest = readManifest(storage, folder, iteration, part);
  if (!manifest) return manifest.error();
  if (manifest->buffers.size() != buffers.size() || manifest->bytes() != bytesOf(buffers))
    return Error::invalidArgument("{} of iteration {} has other buffers than are registered", part, iteration);
  return readState(storage, stateFile(folder, iteration, part), *manifest, buffers);
}

void prune(Storage& storage, const std::string& folder, const std::string& part,
           const std::vector<std::uint64_t>& complete, int keep) {
  if (complete.empty()) return;
  const auto names = storage.list(folder);
  if (!names) return;
  std::vector<std::uint64_t> older;
  for (const std::string& name : *names)
    if (const auto iteration = iterationOf(name); iteration && *iteration < complete.back())
      older.push_back(*iteration);
  std::sort(older.rbegin(), older.rend());
  int kept = 1;
  for (const std::uint64_t iteration : older) {
    const std::string state = stateFile(folder, iteration, part), manifest = manifestFile(folder, iteration, part);
    const auto drop = [&](const std::string& path) {
      if (const Status removed = storage.remove(path); !removed)
        log::info("an old checkpoint stays: {}", removed.error().message());
    };
    // Of one that is older than all that the ranks remember nobody knows more than this.
    const bool counts = std::binary_search(complete.begin(), complete.end(), iteration) ||
                        (iteration < complete.front() && hasPart(storage, folder, iteration, part));
    if (counts && kept++ < keep) continue;
    // Without its manifest it counts no longer, whatever the last step is.
    for (const std::string& path : {manifest, draftOf(manifest), state, draftOf(state)})
      if (storage.size(path)) drop(path);
    const auto rest = storage.list(folderOf(folder, iteration));
    if (rest && rest->empty()) drop(folderOf(folder, iteration));
  }
}

}  // namespace falcon::reshape
