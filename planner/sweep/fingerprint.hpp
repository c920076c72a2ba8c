// Fingerprint: the 64-bit FNV-1a hash, to tell whether two things are the same. Not
// against forgery.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardwise {

class Fingerprint {
 public:
  // Every text is followed by its length, so that "ab", "c" and "a", "bc" differ.
  void add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    for (std::uint64_t size = text.size(), i = 0; i < 8; ++i, size >>= 8)
      mix(static_cast<unsigned char>(size & 0xff));
  }

  std::string hex() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text(16, '0');
    for (std::size_t i = 0; i < 16; ++i) text[15 - i] = digits[(state_ >> (4 * i)) & 0xf];
    return text;
  }

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3ULL; }

  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace shardwise
