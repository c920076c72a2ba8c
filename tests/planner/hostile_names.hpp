// Names that somebody may give a model or a GPU to make a page do what they want, or that are
// merely awkward. Forms after the OWASP filter-evasion list, written out here.
#pragma once

#include <string>
#include <vector>

namespace shardwise {

inline const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> names{
      "<script>alert(1)</script>",
      "</script><script>alert(1)</script>",
      "</SCRIPT ><svg onload=alert(1)>",
      "<!--<script>",
      "--><img src=x onerror=alert(1)>",
      "<![CDATA[</script><script>alert(1)]]>",
      "<img src=x onerror=alert(1)>",
      "<img src=\"x\" onerror=\"alert(1)\">",
      "<img/src=x/onerror=alert(1)>",
      "<svg/onload=alert(1)>",
      "<svg><script>alert(1)</script></svg>",
      "<svg><animate onbegin=alert(1) attributeName=x>",
      "<math><mi//xlink:href=\"data:x,<script>alert(1)</script>\">",
      "<iframe src=javascript:alert(1)>",
      "<iframe srcdoc='<script>alert(1)</script>'>",
      "<object data=javascript:alert(1)>",
      "<embed src=javascript:alert(1)>",
      "<body onload=alert(1)>",
      "<details open ontoggle=alert(1)>",
      "<input autofocus onfocus=alert(1)>",
      "<select autofocus onfocus=alert(1)>",
      "<textarea autofocus onfocus=alert(1)>",
      "<video><source onerror=alert(1)>",
      "<audio src=x onerror=alert(1)>",
      "<marquee onstart=alert(1)>",
      "<a href=javascript:alert(1)>click</a>",
      "<form action=javascript:alert(1)><input type=submit>",
      "<base href=//evil.example/>",
      "<link rel=stylesheet href=//evil.example/x.css>",
      "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
      "<style>@import '//evil.example/x.css';</style>",
      "<style>body{background:url(//evil.example)}</style>",
      "<template><script>alert(1)</script></template>",
      "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
      "\"><script>alert(1)</script>",
      "'><script>alert(1)</script>",
      "' onmouseover='alert(1)",
      "\" onmouseover=\"alert(1)",
      "`-alert(1)-`",
      "${alert(1)}",
      "{{constructor.constructor('alert(1)')()}}",
      "{{document}}",
      "{{scripts}}",
      "javascript:alert(1)",
      "data:text/html,<script>alert(1)</script>",
      "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
      "&lt;script&gt;alert(1)&lt;/script&gt;",
      "&#60;script&#62;alert(1)",
      "\\x3cscript\\x3ealert(1)",
      "%3Cscript%3Ealert(1)%3C/script%3E",
      "\";alert(1);//",
      "';alert(1);//",
      "\\\";alert(1);//",
      "*/alert(1)/*",
      "__proto__",
      "constructor",
      "hasOwnProperty",
      "toString",
      "line\nbreak\r\nand\ttab",
      "separators \xE2\x80\xA8 and \xE2\x80\xA9 end lines",
      "\xE2\x80\xAEtnemevom gnorw\xE2\x80\xAC",  // right-to-left override
      "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D \xD8\xB3\xD9\x84\xD8\xA7\xD9\x85",  // Hebrew, Arabic
      "\xF0\x9F\x98\x80\xF0\x9F\x98\x80 \xE4\xB8\xAD\xE6\x96\x87",
      "null \xE2\x80\x8B zero width \xEF\xBB\xBF",
      "../../../../etc/passwd",
      "; rm -rf /; $(id) `id`",
      "=cmd|' /C calc'!A0",
      std::string(10'000, 'A'),
      "<b>" + std::string(10'000, '<'),
  };
  return names;
}

}  // namespace shardwise
