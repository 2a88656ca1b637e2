#include "ext_net/fake_devices.h"

namespace falcon::net::test {
namespace {

ibv_gid gidOf(std::uint8_t last, bool isIpv4) {
  ibv_gid gid{};
  if (isIpv4) {
    gid.raw[10] = gid.raw[11] = 0xff;
    gid.raw[12] = 10;
  } else {
    gid.raw[0] = 0xfe;
    gid.raw[1] = 0x80;
  }
  gid.raw[15] = last;
  return gid;
}

ibv_gid_entry entryOf(std::uint32_t index, const ibv_gid& gid, ibv_gid_type type) {
  ibv_gid_entry entry{};
  entry.gid = gid;
  entry.gid_index = index;
  entry.port_num = 1;
  entry.gid_type = type;
  return entry;
}

FakeDevice deviceOf(const std::string& name, std::uint8_t layer) {
  FakeDevice device;
  device.name = name;
  device.attributes.phys_port_cnt = 1;
  device.attributes.max_qp = 1000;
  device.attributes.sys_image_guid = 0x0102030405060708;
  ibv_port_attr port{};
  port.state = IBV_PORT_ACTIVE;
  port.active_mtu = port.max_mtu = IBV_MTU_4096;
  port.link_layer = layer;
  port.gid_tbl_len = 8;
  device.ports.push_back(port);
  return device;
}

}  // namespace

FakeDevice roceDevice(const std::string& name, std::uint8_t last) {
  FakeDevice device = deviceOf(name, IBV_LINK_LAYER_ETHERNET);
  device.gids = {
      entryOf(0, gidOf(last, false), IBV_GID_TYPE_ROCE_V1), entryOf(1, gidOf(last, false), IBV_GID_TYPE_ROCE_V2),
      entryOf(2, gidOf(last, true), IBV_GID_TYPE_ROCE_V1), entryOf(3, gidOf(last, true), IBV_GID_TYPE_ROCE_V2)};
  return device;
}

FakeDevice infinibandDevice(const std::string& name, std::uint16_t lid) {
  FakeDevice device = deviceOf(name, IBV_LINK_LAYER_INFINIBAND);
  device.ports[0].lid = lid;
  device.gids = {entryOf(0, gidOf(static_cast<std::uint8_t>(lid), false), IBV_GID_TYPE_IB)};
  return device;
}

}  // namespace falcon::net::test
