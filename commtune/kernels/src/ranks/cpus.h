#pragma once

#include <set>
#include <string_view>

namespace commtune {

/// The CPUs that this process may run on.
std::set<int> allowed_cpus();

/// CPUs of the kernel's list form: "0-3,8". Error where it is something else.
std::set<int> parse_cpu_list(std::string_view text);

/// Those that are in both.
std::set<int> common(const std::set<int>& one, const std::set<int>& other);

/// Those of `near` that are in `allowed`; none where that would be no narrower than `allowed`.
std::set<int> narrowed(const std::set<int>& allowed, const std::set<int>& near);

/// Lets all threads of this process run on these CPUs only. Error if the kernel refuses.
void run_on_cpus(const std::set<int>& cpus);

}  // namespace commtune
