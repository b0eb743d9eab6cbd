/// What a GPU's NVLinks are told to be, and how often NVML is asked for it: by a library in its
/// place.

#include <numeric>

#include "fake_nvml.h"
#include "gpu/driver.h"
#include "harness.h"

using namespace commtune;
using fake_nvml::Link;

namespace {

std::string told(const std::vector<Link>& links) {
  fake_nvml::links() = links;
  fake_nvml::calls().clear();
  return gpu_links_json(fake_nvml::kAddress);
}

int all_calls() {
  return std::accumulate(fake_nvml::calls().begin(), fake_nvml::calls().end(), 0,
                         [](int sum, const auto& call) { return sum + call.second; });
}

}  // namespace

TEST(links_to_switches_without_an_address_are_one_bundle) {
  const Link link{true, fake_nvml::kSwitch, fake_nvml::kNoBus, fake_nvml::kNvlink4, 26562};
  EXPECT(told(std::vector<Link>(18, link)) ==
         "[{\"to\":\"switch\",\"pci\":null,\"links\":18,\"version\":\"4.0\","
         "\"link_Bps\":2.6562e+10}]");
  // The number of links, then state and kind of each; the rest of the first one.
  EXPECT(all_calls() == 1 + 2 * 18 + 3);
}

TEST(links_to_each_gpu_and_each_switch_with_an_address_are_a_bundle) {
  const Link one{true, fake_nvml::kGpu, 0x48, fake_nvml::kNvlink3, 25781};
  Link other = one;
  other.bus = 0x4c;
  Link a_switch = one;
  a_switch.to = fake_nvml::kSwitch;
  a_switch.bus = 0xc4;
  Link another_switch = a_switch;
  another_switch.bus = 0xc5;
  const std::string rest = ",\"version\":\"3.0\",\"link_Bps\":2.5781e+10}";
  EXPECT(told({one, other, one, a_switch, another_switch, other, one}) ==
         "[{\"to\":\"gpu\",\"pci\":\"0000:48:00.0\",\"links\":3" + rest +
             ",{\"to\":\"gpu\",\"pci\":\"0000:4c:00.0\",\"links\":2" + rest +
             ",{\"to\":\"switch\",\"pci\":\"0000:c4:00.0\",\"links\":1" + rest +
             ",{\"to\":\"switch\",\"pci\":\"0000:c5:00.0\",\"links\":1" + rest + "]");
  EXPECT(fake_nvml::calls()["nvmlDeviceGetNvLinkVersion"] == 2);
}

TEST(links_to_unlike_ends_may_be_unlike) {
  const Link to_gpu{true, fake_nvml::kGpu, 0x48, fake_nvml::kNvlink3, 25781};
  const Link to_cpu{true, fake_nvml::kCpu, 0, fake_nvml::kNvlink4, 26562};
  const std::string found = told({to_cpu, to_gpu});
  EXPECT(harness::contains(found, "\"version\":\"4.0\",\"link_Bps\":2.6562e+10"));
  EXPECT(harness::contains(found, "\"version\":\"3.0\",\"link_Bps\":2.5781e+10"));
}

TEST(links_that_are_down_are_left_out_and_not_asked_further) {
  const Link down{false, fake_nvml::kSwitch, fake_nvml::kNoBus, fake_nvml::kNvlink4, 26562};
  EXPECT(told({down, down}) == "[]");
  EXPECT(all_calls() == 1 + 2);
}

TEST(a_gpu_that_the_driver_does_not_know_has_no_links_told) {
  EXPECT(gpu_links_json("0000:99:00.0") == "null");
}
