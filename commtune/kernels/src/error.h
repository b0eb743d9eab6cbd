#pragma once

#include <stdexcept>
#include <string>

namespace commtune {

/// Something that ends the run: an MPI call, a system call or a file failed.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Exit statuses of the executable; part of the contract.
enum ExitStatus : int {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,
  kExitWrongResult = 3,
  kExitWrongWorld = 4,
  kExitWaived = 5
};

/// An error that all ranks meet, so that one of them reports it. Unless it has another status, the
/// command line asks for something that doesn't exist, and the message says what does.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& why, ExitStatus status = kExitUsage)
      : Error(why), status_(status) {}

  ExitStatus status() const { return status_; }

 private:
  ExitStatus status_;
};

/// What was asked for makes sense, and this machine or this executable can't do it.
class Waived final : public UsageError {
 public:
  explicit Waived(const std::string& why) : UsageError(why, kExitWaived) {}
};

}  // namespace commtune
