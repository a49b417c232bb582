// See html_text.h. One hue says how much, a second one says waiting; both have a variant for dark pages.
#include "daemon/profile/html_text.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace kernelwright::profile {

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

namespace {

// Three significant digits.
std::string Digits(double value) {
  const double magnitude = std::abs(value);
  return Fixed(value, magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2);
}

}  // namespace

std::string Compact(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1e12) return Digits(value / 1e12) + " T";
  if (magnitude >= 1e9) return Digits(value / 1e9) + " G";
  if (magnitude >= 1e6) return Digits(value / 1e6) + " M";
  if (magnitude >= 1e4) return Digits(value / 1e3) + " k";
  return magnitude == std::floor(magnitude) ? Fixed(value, 0) : Digits(value);
}

std::string Bytes(double bytes) {
  if (bytes >= 1024.0 * 1024 * 1024) return Digits(bytes / (1024.0 * 1024 * 1024)) + " GiB";
  if (bytes >= 1024.0 * 1024) return Digits(bytes / (1024.0 * 1024)) + " MiB";
  if (bytes >= 1024) return Digits(bytes / 1024) + " KiB";
  return Fixed(bytes, 0) + " B";
}

std::string Time(double milliseconds) {
  return milliseconds >= 0.1 ? Digits(milliseconds) + " ms" : Digits(milliseconds * 1000) + " µs";
}

const char* const kStyle = R"(
:root{color-scheme:light dark;--page:#fbfaf7;--card:#fff;--ink:#1c1b18;--soft:#6b675e;--rule:#e3dfd5;--heat:203,75,22;
--busy:#1f6f8b;--wait:#c8452d;--ok:#3f7d3f;--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
@media(prefers-color-scheme:dark){:root{--page:#16171a;--card:#1e2024;--ink:#e8e6e1;--soft:#a09c92;--rule:#34363c;
--heat:255,138,76;--busy:#5fb3d1;--wait:#ff8168;--ok:#8cc78c}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:24px 16px 64px}h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;
margin:32px 0 8px}h3{font-size:15px;margin:20px 0 6px}p{margin:4px 0}.soft{color:var(--soft)}.card{background:var(--card);
border:1px solid var(--rule);border-radius:6px;padding:12px 14px;margin:10px 0}.figures{display:flex;flex-wrap:wrap;
gap:12px 32px;margin:12px 0}.figures b{display:block;font-size:20px;font-weight:600}.figures span{color:var(--soft);
font-size:13px}.refusal{border-left:4px solid var(--wait)}code,pre,.code td{font-family:var(--mono);font-size:13px}
table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:500;color:var(--soft);font-size:13px;
border-bottom:1px solid var(--rule);padding:4px 8px}td{padding:3px 8px;vertical-align:top}td.n,th.n{text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}tbody tr+tr td{border-top:1px solid var(--rule)}.code{overflow-x:auto}
.code tbody tr+tr td{border-top:0}.code td{padding:0 8px;white-space:pre;line-height:1.55}.code td.t{width:100%}
.code tr.on td{outline:1px solid var(--busy)}.code tr:target td{outline:1px solid var(--wait)}svg{display:block;width:100%;
height:auto;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}svg .s{fill:var(--soft)}svg .g{stroke:var(--rule);
fill:none}svg .l{stroke:var(--ink);fill:none;stroke-width:1.5}svg .b{fill:var(--busy)}svg .w{fill:var(--wait)}
svg .o{fill:none;stroke:var(--ink)}.advice h3{margin:0 0 2px}.advice .share{float:right;color:var(--soft);font-size:13px}
a{color:var(--busy)}.faster{color:var(--ok)}.slower{color:var(--wait)}
)";

const char* const kScript = R"(
for(const e of document.querySelectorAll('[data-line]')){const show=on=>{const r=document.getElementById(e.dataset.line);
if(r)r.classList.toggle('on',on)};e.addEventListener('mouseenter',()=>show(true));
e.addEventListener('mouseleave',()=>show(false))}
)";

}  // namespace kernelwright::profile
