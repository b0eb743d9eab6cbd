/// For executables without GPUs.

#include "ranks/devices.h"

namespace commtune {

bool choose_device(int /*local_rank*/, bool /*shares*/) { return false; }
std::string device_identity() { return ""; }
double device_start_s() { return 0.0; }
void stay_near_device() {}
std::string device_facts_json() { return "null"; }
std::string device_state_json() { return "null"; }
std::string device_links_json() { return "null"; }
std::string device_nic_json() { return "null"; }

}  // namespace commtune
