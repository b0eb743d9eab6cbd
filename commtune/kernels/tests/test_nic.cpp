/// Which NIC is near a GPU, in folders like those in which kernels describe devices.

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "harness.h"
#include "ranks/nic.h"

using namespace commtune;

namespace {

/// A folder of its own for a test.
class Sysfs {
 public:
  Sysfs() {
    std::string name = "/tmp/commtune-test-nic-XXXXXX";
    root_ = mkdtemp(name.data());
    for (const char* folder : {"/bus", "/bus/pci", "/bus/pci/devices", "/class",
                               "/class/infiniband", "/class/cxi", "/devices"}) {
      make(folder);
    }
  }

  ~Sysfs() {
    const auto remove_one = [](const char* path, const struct stat*, int, FTW*) {
      return remove(path);
    };
    nftw(root_.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
  }
  Sysfs(const Sysfs&) = delete;
  Sysfs& operator=(const Sysfs&) = delete;

  /// A device behind bridges: "pci0000:15/0000:15:01.0/0000:18:00.0".
  Sysfs& device(const std::string& path, const std::string& numa, const std::string& cpus) {
    for (std::size_t end = path.find('/'); end != std::string::npos;
         end = path.find('/', end + 1)) {
      make("/devices/" + path.substr(0, end));
    }
    make("/devices/" + path);
    write("/devices/" + path + "/numa_node", numa);
    write("/devices/" + path + "/local_cpulist", cpus);
    link("/bus/pci/devices/" + path.substr(path.rfind('/') + 1), "/devices/" + path);
    return *this;
  }

  Sysfs& nic(const std::string& name, const std::string& path, const std::string& numa,
             const std::string& cpus, const std::string& state = "4: ACTIVE") {
    device(path, numa, cpus);
    const std::string own = "/class/infiniband/" + name;
    for (const char* folder : {"", "/ports", "/ports/1"}) make(own + folder);
    write(own + "/ports/1/state", state);
    link(own + "/device", "/devices/" + path);
    return *this;
  }

  Sysfs& slingshot_nic(const std::string& name, const std::string& path, const std::string& numa,
                       const std::string& cpus) {
    device(path, numa, cpus);
    make("/class/cxi/" + name);
    link("/class/cxi/" + name + "/device", "/devices/" + path);
    return *this;
  }

  std::string nearest(const std::string& pci, int turn = 0) const {
    const auto found = nearest_nic(root_, pci, turn);
    return found ? found->name + " " + found->cpus : "none";
  }

 private:
  void make(const std::string& folder) { mkdir((root_ + folder).c_str(), 0700); }
  void link(const std::string& from, const std::string& to) {
    EXPECT(symlink((root_ + to).c_str(), (root_ + from).c_str()) == 0);
  }
  void write(const std::string& path, const std::string& text) {
    std::ofstream(root_ + path) << text << '\n';
  }

  std::string root_;
};

/// As in a DGX: two GPUs and two NICs behind each of two switches, one switch a processor.
void add_two_switches(Sysfs& sysfs) {
  const std::string first = "pci0000:15/0000:15:01.0/0000:16:00.0/";
  const std::string second = "pci0000:97/0000:97:01.0/0000:98:00.0/";
  sysfs.device(first + "0000:17:00.0/0000:18:00.0", "0", "0-55")
      .device(first + "0000:17:01.0/0000:19:00.0", "0", "0-55")
      .device(second + "0000:99:00.0/0000:9a:00.0", "1", "56-111")
      .nic("mlx5_2", first + "0000:17:02.0/0000:1a:00.0", "0", "0-27")
      .nic("mlx5_10", first + "0000:17:03.0/0000:1b:00.0", "0", "0-27")
      .nic("mlx5_3", second + "0000:99:02.0/0000:9b:00.0", "1", "56-111")
      .nic("mlx5_0", "pci0000:26/0000:26:01.0/0000:27:00.0", "0", "0-55");
}

}  // namespace

TEST(a_nic_behind_the_same_switch_is_nearest) {
  Sysfs sysfs;
  add_two_switches(sysfs);
  EXPECT(sysfs.nearest("0000:18:00.0") == "mlx5_2 0-27");
  EXPECT(sysfs.nearest("0000:9a:00.0") == "mlx5_3 56-111");
}

TEST(ranks_take_turns_at_nics_equally_near) {
  Sysfs sysfs;
  add_two_switches(sysfs);
  EXPECT(sysfs.nearest("0000:19:00.0", 1) == "mlx5_10 0-27");
  EXPECT(sysfs.nearest("0000:19:00.0", 2) == "mlx5_2 0-27");
  EXPECT(sysfs.nearest("0000:9a:00.0", 7) == "mlx5_3 56-111");
}

TEST(where_no_bridge_is_shared_the_numa_node_decides) {
  Sysfs sysfs;
  sysfs.device("pci0000:c0/0000:c1:00.0", "1", "64-127")
      .nic("mlx5_0", "pci0000:00/0000:01:00.0", "0", "0-63")
      .nic("mlx5_1", "pci0000:a0/0000:a1:00.0", "1", "64-127");
  EXPECT(sysfs.nearest("0000:c1:00.0") == "mlx5_1 64-127");
  EXPECT(sysfs.nearest("0000:c1:00.0", 1) == "mlx5_1 64-127");
}

TEST(a_shared_bridge_counts_more_than_the_numa_node) {
  Sysfs sysfs;
  sysfs.device("pci0000:c0/0000:c0:01.0/0000:c1:00.0", "1", "64-127")
      .nic("mlx5_0", "pci0000:c0/0000:c0:01.0/0000:c2:00.0", "-1", "0-127")
      .nic("mlx5_1", "pci0000:a0/0000:a1:00.0", "1", "64-127");
  EXPECT(sysfs.nearest("0000:c1:00.0") == "mlx5_0 0-127");
}

TEST(nics_without_a_port_that_is_up_are_passed_over) {
  Sysfs sysfs;
  sysfs.device("pci0000:15/0000:15:01.0/0000:16:00.0", "0", "0-7")
      .nic("mlx5_0", "pci0000:15/0000:15:01.0/0000:17:00.0", "0", "0-7", "1: DOWN");
  EXPECT(sysfs.nearest("0000:16:00.0") == "none");
  sysfs.nic("mlx5_1", "pci0000:26/0000:27:00.0", "1", "8-15");
  EXPECT(sysfs.nearest("0000:16:00.0") == "mlx5_1 8-15");
}

TEST(nics_of_slingshot_are_nics) {
  Sysfs sysfs;
  sysfs.device("pci0000:d0/0000:d0:01.1/0000:d1:00.0", "3", "48-63")
      .device("pci0000:c0/0000:c0:01.1/0000:c1:00.0", "1", "16-31")
      .slingshot_nic("cxi0", "pci0000:d0/0000:d0:03.1/0000:d5:00.0", "3", "48-63")
      .slingshot_nic("cxi1", "pci0000:c0/0000:c0:03.1/0000:c5:00.0", "1", "16-31")
      .nic("mlx5_0", "pci0000:00/0000:01:00.0", "0", "0-15");
  EXPECT(sysfs.nearest("0000:d1:00.0", 1) == "cxi0 48-63");
  EXPECT(sysfs.nearest("0000:c1:00.0") == "cxi1 16-31");
}

TEST(a_machine_without_such_devices_has_no_nearest) {
  Sysfs sysfs;
  EXPECT(sysfs.nearest("0000:16:00.0") == "none");
  sysfs.device("pci0000:15/0000:16:00.0", "0", "0-7");
  EXPECT(sysfs.nearest("0000:16:00.0") == "none");
  EXPECT(!nearest_nic("/nonexistent", "0000:16:00.0", 0));
}

TEST(cpus_are_those_near_both_where_some_are) {
  EXPECT((near_both({0, 1, 2, 3}, {2, 3, 4}) == std::set<int>{2, 3}));
  EXPECT((near_both({0, 1}, {2, 3}) == std::set<int>{0, 1}));
  EXPECT((near_both({0, 1}, {}) == std::set<int>{0, 1}));
  EXPECT(near_both({}, {2}).empty());
}
