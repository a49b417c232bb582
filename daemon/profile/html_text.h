// Pieces that the parts of the page share: escaping, numbers, style.
#pragma once

#include <string>
#include <string_view>

namespace kernelwright::profile {

std::string Escape(std::string_view text);    // for text and attributes
std::string Compact(double value);            // "1.2 M", "340 k", "12.5"
std::string Bytes(double bytes);              // "4.0 MiB"
std::string Time(double milliseconds);        // "11.8 ms", "43 µs"
std::string Fixed(double value, int digits);  // coordinates

extern const char* const kStyle;   // content of <style>
extern const char* const kScript;  // content of <script>

}  // namespace kernelwright::profile
