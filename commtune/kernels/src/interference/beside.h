#pragma once

#include "interference/aggressor.h"
#include "interference/aggressor_traffic.h"
#include "ranks/world.h"

namespace commtune {

/// Ranks that measure and aggressors beside them talk over a world of both, in which those that
/// measure come first. Only the first ranks of both do: a question, an answer. The aggressors look
/// for questions between their rounds; while the others measure, no message is under way to them.

/// The end of those that measure. Calls at other ranks than the first do nothing.
class VictimLink {
 public:
  /// @param victims how many ranks measure
  VictimLink(const World& all, int victims) : all_(all), aggressor_(victims) {}

  /// What the aggressors did until now: they send, or pause as they are to, when it returns.
  Traffic ask() const;

  /// Ends the aggressors; what they did in all. All their messages are complete when it returns.
  /// @param status what they are to exit with
  Traffic stop(int status) const;

 private:
  Traffic exchange(bool stops, int status) const;

  const World& all_;
  int aggressor_;  ///< the first, in the world of both
};

/// The end of the aggressors.
class AggressorLink final : public AggressorControl {
 public:
  explicit AggressorLink(const World& all) : all_(all) {}

  void look(const Traffic& so_far) override;
  std::optional<Ending> ending(bool signalled, double now_s) override;

  /// The first rank's answer to the order to stop, once all is complete.
  void confirm(const Traffic& in_all) const;

  /// What those that measured exit with; known to the first rank.
  int status() const { return status_; }

 private:
  void answer(const Traffic& traffic) const;

  const World& all_;
  bool stops_ = false;
  int status_ = 0;
};

}  // namespace commtune
