// Units: every physical number in shardwise is one of these types.
//
//   Bytes           int64   exact, so that a ledger balances to the byte
//   Flops           double  a large step (3.9e19) does not fit in int64
//   Seconds         double  a duration, as cost models produce it
//   SimTime         int64   picoseconds since the step began: a point, never a duration
//   BytesPerSecond  double  one direction of a link
//   FlopsPerSecond  double  dense, never the sparsity figure
//
// Two of them mix only where a relation is listed below; `.value` is read in this file, in
// input/output and in fits.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace shardwise {

template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(k * a.value); }
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }

  // A ratio of like quantities is a plain number: a utilisation, a speed-up, a bubble fraction.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;
using Seconds = Quantity<struct SecondsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) {
  return Seconds(static_cast<double>(b.value) / r.value);
}
constexpr Seconds operator/(Flops f, FlopsPerSecond r) { return Seconds(f.value / r.value); }

// A point on the simulated clock. int64 picoseconds span 106 days; ties compare exactly.
struct SimTime {
  std::int64_t picoseconds = 0;

  friend constexpr auto operator<=>(SimTime, SimTime) = default;
  friend SimTime operator+(SimTime t, Seconds d) {
    return {t.picoseconds + std::llround(d.value * 1e12)};
  }
  friend constexpr Seconds operator-(SimTime a, SimTime b) {
    return Seconds(static_cast<double>(a.picoseconds - b.picoseconds) * 1e-12);
  }
};

constexpr double gib(Bytes b) { return static_cast<double>(b.value) / (1024.0 * 1024.0 * 1024.0); }

constexpr Seconds longest(Seconds a, Seconds b) { return a > b ? a : b; }

// Bytes from a fractional count (a NF4 weight takes half a byte): the next whole byte.
inline Bytes ceil_bytes(double bytes) { return Bytes(static_cast<std::int64_t>(std::ceil(bytes))); }

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 30);
}
constexpr Bytes operator""_GB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) * 1'000'000'000);
}
}  // namespace literals

}  // namespace shardwise
