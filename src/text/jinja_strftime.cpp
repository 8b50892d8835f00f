#include "text/jinja_strftime.h"

#include <array>

#include "text/jinja_error.h"

namespace crest::text::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};

struct IsoWeek {
  int year;
  int week;
};

IsoWeek iso_week(const std::tm& t) {
  const int year = t.tm_year + 1900;
  const int weekday = (t.tm_wday + 6) % 7;  // Monday is 0
  const int week = (t.tm_yday - weekday + 10) / 7;
  const auto weeks_in = [](int y) {
    const auto december31 = [](int v) { return (v + v / 4 - v / 100 + v / 400) % 7; };
    return december31(y) == 4 || december31(y - 1) == 3 ? 53 : 52;
  };
  if (week < 1) return {year - 1, weeks_in(year - 1)};
  if (week > weeks_in(year)) return {year + 1, 1};
  return {year, week};
}

/// One conversion; datetime.now() of Python knows no zone, so %z and %Z are empty. False: there is no such conversion.
bool convert(std::string& out, char conversion, const std::tm& t) {
  const int year = t.tm_year + 1900;
  const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
  const auto day = kDays[static_cast<size_t>(t.tm_wday) % 7];
  const auto month = kMonths[static_cast<size_t>(t.tm_mon) % 12];
  switch (conversion) {
    case 'a':
      out += day.substr(0, 3);
      break;
    case 'A':
      out += day;
      break;
    case 'b':
    case 'h':
      out += month.substr(0, 3);
      break;
    case 'B':
      out += month;
      break;
    case 'c':
      out += fmt::format("{} {} {:2} {:02}:{:02}:{:02} {}", day.substr(0, 3), month.substr(0, 3), t.tm_mday, t.tm_hour,
                         t.tm_min, t.tm_sec, year);
      break;
    case 'C':
      out += fmt::format("{:02}", year / 100);
      break;
    case 'd':
      out += fmt::format("{:02}", t.tm_mday);
      break;
    case 'D':
    case 'x':
      out += fmt::format("{:02}/{:02}/{:02}", t.tm_mon + 1, t.tm_mday, year % 100);
      break;
    case 'e':
      out += fmt::format("{:2}", t.tm_mday);
      break;
    case 'f':
      out += "000000";
      break;
    case 'F':
      out += fmt::format("{}-{:02}-{:02}", year, t.tm_mon + 1, t.tm_mday);
      break;
    case 'g':
      out += fmt::format("{:02}", iso_week(t).year % 100);
      break;
    case 'G':
      out += fmt::format("{}", iso_week(t).year);
      break;
    case 'H':
      out += fmt::format("{:02}", t.tm_hour);
      break;
    case 'I':
      out += fmt::format("{:02}", hour12);
      break;
    case 'j':
      out += fmt::format("{:03}", t.tm_yday + 1);
      break;
    case 'k':
      out += fmt::format("{:2}", t.tm_hour);
      break;
    case 'l':
      out += fmt::format("{:2}", hour12);
      break;
    case 'm':
      out += fmt::format("{:02}", t.tm_mon + 1);
      break;
    case 'M':
      out += fmt::format("{:02}", t.tm_min);
      break;
    case 'n':
      out += '\n';
      break;
    case 'p':
      out += t.tm_hour < 12 ? "AM" : "PM";
      break;
    case 'P':
      out += t.tm_hour < 12 ? "am" : "pm";
      break;
    case 'r':
      out += fmt::format("{:02}:{:02}:{:02} {}", hour12, t.tm_min, t.tm_sec, t.tm_hour < 12 ? "AM" : "PM");
      break;
    case 'R':
      out += fmt::format("{:02}:{:02}", t.tm_hour, t.tm_min);
      break;
    case 's': {
      std::tm copy = t;
      out += fmt::format("{}", static_cast<long long>(std::mktime(&copy)));
      break;
    }
    case 'S':
      out += fmt::format("{:02}", t.tm_sec);
      break;
    case 't':
      out += '\t';
      break;
    case 'T':
    case 'X':
      out += fmt::format("{:02}:{:02}:{:02}", t.tm_hour, t.tm_min, t.tm_sec);
      break;
    case 'u':
      out += fmt::format("{}", (t.tm_wday + 6) % 7 + 1);
      break;
    case 'U':
      out += fmt::format("{:02}", (t.tm_yday + 7 - t.tm_wday) / 7);
      break;
    case 'V':
      out += fmt::format("{:02}", iso_week(t).week);
      break;
    case 'w':
      out += fmt::format("{}", t.tm_wday);
      break;
    case 'W':
      out += fmt::format("{:02}", (t.tm_yday + 7 - (t.tm_wday + 6) % 7) / 7);
      break;
    case 'y':
      out += fmt::format("{:02}", year % 100);
      break;
    case 'Y':
      out += fmt::format("{}", year);
      break;
    case 'z':
    case 'Z':
      break;
    case '%':
      out += '%';
      break;
    default:
      return false;
  }
  return true;
}

/// %-d: without leading zeros and spaces, as the C library of Linux does.
std::string without_padding(std::string text) {
  const size_t digit = text.find_first_not_of("0 ");
  if (digit == std::string::npos) return text.empty() ? text : "0";
  return text.substr(digit);
}

}  // namespace

std::string format_time(std::string_view format, const std::tm& time) {
  constexpr size_t kMaxLength = 65536;
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (out.size() > kMaxLength) raise(Fault::kBudget, "the format of a time is longer than {} bytes", kMaxLength);
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool bare = format[i + 1] == '-' && i + 2 < format.size();
    const size_t at = i + (bare ? 2 : 1);
    std::string part;
    if (!convert(part, format[at], time)) {
      out += format.substr(i, at - i + 1);
    } else {
      out += bare ? without_padding(std::move(part)) : part;
    }
    i = at;
  }
  return out;
}

}  // namespace crest::text::jinja
