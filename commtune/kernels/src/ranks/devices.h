#pragma once

#include <string>

namespace commtune {

/// Chooses this process's GPU: the only one that is visible, else the one of its local rank.
/// Returns whether it did: not in an executable without GPUs, and not the second time. Waived, on
/// ranks of this node, where it has no GPU or more local ranks than GPUs.
bool choose_device(int local_rank, bool shares);

/// What tells this process's GPU, or the instance of one that it was given, from all others of the
/// machine. Empty without a GPU.
std::string device_identity();

/// Seconds that choosing it took: the driver's and the runtime's start, and a context. 0 without a
/// GPU.
double device_start_s();

/// Narrows this process's CPU mask to the allowed CPUs near its GPU, if there are any: to those
/// that are near its NIC, too, where some are.
void stay_near_device();

/// The GPU of this process, its state now, and its links, as JSON; "null" without one.
std::string device_facts_json();
std::string device_state_json();
std::string device_links_json();

/// The name of the RDMA device nearest to the GPU, as JSON; "null" without one.
std::string device_nic_json();

}  // namespace commtune
