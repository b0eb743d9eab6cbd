#pragma once

#include <stdexcept>
#include <string>

namespace commtune {

/// Something that ends the run: an MPI call, a system call or a file failed.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line asks for something that doesn't exist; the message says what does.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Exit statuses of the executable; part of the contract.
enum ExitStatus : int {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,
  kExitWrongResult = 3,
  kExitWrongWorld = 4
};

}  // namespace commtune
