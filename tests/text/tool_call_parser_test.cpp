#include "text/tool_call_parser.h"

#include <gtest/gtest.h>

#include <random>

namespace crest::text {

void PrintTo(const ToolCall& call, std::ostream* out) { *out << call.name << call.arguments; }

namespace {

using Json = nlohmann::ordered_json;

struct Parsed {
  std::string content;
  std::vector<ToolCall> calls;
  friend bool operator==(const Parsed&, const Parsed&) = default;
};
void PrintTo(const Parsed& p, std::ostream* out) {
  *out << "'" << p.content << "' " << ::testing::PrintToString(p.calls);
}

Json weather_tools() {
  return Json::parse(
      R"([{"type": "function", "function": {"name": "ship", "parameters": {"type": "object", "properties": {
    "zip": {"type": "string"}, "timeout": {"type": "integer"}, "weight": {"type": "number"}, "fast": {"type": "boolean"},
    "tags": {"type": "array"}, "extra": {"anyOf": [{"type": "object"}, {"type": "null"}]}, "either": {"type": ["integer", "string"]},
    "size": {"enum": [1, 2, 3]}}}}}])");
}

ToolCallFormat xml(Json tools = nullptr) {
  return {ToolCallForm::kQwenXml, {"<tool_call>"}, {"</tool_call>"}, std::move(tools)};
}
ToolCallFormat hermes() { return {ToolCallForm::kHermes, {"<tool_call>"}, {"</tool_call>"}, nullptr}; }

Parsed parse(const std::vector<OutputPiece>& pieces, const ToolCallFormat& format) {
  ToolCallParser parser(format);
  Parsed parsed;
  const auto add = [&](ToolCallParser::Delta delta) {
    parsed.content += delta.content;
    for (ToolCall& call : delta.calls) parsed.calls.push_back(std::move(call));
  };
  for (const OutputPiece& piece : pieces) add(parser.push(piece));
  add(parser.finish());
  return parsed;
}

Parsed parse(std::string_view text, const ToolCallFormat& format) { return parse({{std::string(text), -1}}, format); }

std::string ship(std::string_view parameters) {
  return "<tool_call>\n<function=ship>\n" + std::string(parameters) + "</function>\n</tool_call>";
}

Json argument(std::string_view key, std::string_view value) {
  const Parsed parsed = parse(ship("<parameter=" + std::string(key) + ">\n" + std::string(value) + "\n</parameter>\n"),
                              xml(weather_tools()));
  return parsed.calls.size() == 1 ? Json::parse(parsed.calls[0].arguments).value(std::string(key), Json("missing"))
                                  : Json("no call");
}

TEST(ToolCallParser, ArgumentKeepsNewlinesAndIndentation) {
  const Parsed parsed = parse(
      "<tool_call>\n<function=python>\n<parameter=code>\ndef f():\n    "
      "pass\n\nf()\n</parameter>\n</function>\n</tool_call>",
      xml());
  EXPECT_EQ(parsed, (Parsed{"", {{"python", R"x({"code":"def f():\n    pass\n\nf()"})x"}}}));
}

TEST(ToolCallParser, NoArguments) {
  EXPECT_EQ(parse("<tool_call>\n<function=empty>\n</function>\n</tool_call>", xml()), (Parsed{"", {{"empty", "{}"}}}));
}

TEST(ToolCallParser, SeveralCallsAndProse) {
  const std::string one = "<tool_call>\n<function=a>\n</function>\n</tool_call>";
  const std::string two = "<tool_call>\n<function=b>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>";
  EXPECT_EQ(parse("Let me look.\n\n" + one + "\n" + two + "\n", xml()),
            (Parsed{"Let me look.", {{"a", "{}"}, {"b", R"({"x":"1"})"}}}));
  EXPECT_EQ(parse(one + "\n\nDone.", xml()), (Parsed{"Done.", {{"a", "{}"}}}));
}

// Values are typed by the tool's schema: a zip code stays text, a timeout becomes a number, True is a boolean only
// where one is expected.
TEST(ToolCallParser, TypesFollowTheSchema) {
  EXPECT_EQ(argument("zip", "02134"), Json("02134"));
  EXPECT_EQ(argument("zip", "true"), Json("true"));
  EXPECT_EQ(argument("timeout", "30"), Json(30));
  EXPECT_EQ(argument("timeout", "-7"), Json(-7));
  EXPECT_EQ(argument("timeout", "18446744073709551615"), Json(18446744073709551615u));
  EXPECT_EQ(argument("timeout", "soon"), Json("soon"));
  EXPECT_EQ(argument("weight", "1.5"), Json(1.5));
  EXPECT_EQ(argument("weight", "3"), Json(3));
  EXPECT_EQ(argument("weight", "1e999"), Json("1e999"));
  EXPECT_EQ(argument("fast", "True"), Json(true));
  EXPECT_EQ(argument("fast", "FALSE"), Json(false));
  EXPECT_EQ(argument("tags", R"(["a", 1])"), Json::parse(R"(["a",1])"));
  EXPECT_EQ(argument("tags", "{}"), Json("{}"));
  EXPECT_EQ(argument("extra", R"({"k": [null]})"), Json::parse(R"({"k":[null]})"));
  EXPECT_EQ(argument("extra", "None of it"), Json("None of it"));
  EXPECT_EQ(argument("either", "5"), Json(5));
  EXPECT_EQ(argument("either", "five"), Json("five"));
  EXPECT_EQ(argument("size", "2"), Json(2));
  EXPECT_EQ(argument("unknown", "5"), Json("5"));
  for (const char* null : {"null", "NULL", "Null"}) EXPECT_EQ(argument("extra", null), Json(nullptr));
}

TEST(ToolCallParser, ExactlyOneNewlineGoesAtEachEnd) {
  EXPECT_EQ(argument("zip", "\n a \n"), Json("\n a \n"));
  EXPECT_EQ(argument("zip", ""), Json(""));
}

// Output that is not quite the form: closing tags twice, never, or quoted inside of a value.
TEST(ToolCallParser, ForgivesMistakes) {
  const auto arguments = [](std::string_view body) {
    const Parsed parsed = parse(ship(body), xml());
    return parsed.calls.size() == 1 ? parsed.calls[0].arguments : "calls: " + ::testing::PrintToString(parsed.calls);
  };
  EXPECT_EQ(arguments("<parameter=a>\n1\n</parameter>\n</parameter>\n<parameter=b>\n2\n</parameter>\n"),
            R"({"a":"1","b":"2"})");
  EXPECT_EQ(arguments("<parameter=a>\n1\n<parameter=b>\n2\n</parameter>\n"), R"({"a":"1\n<parameter=b>\n2"})");
  EXPECT_EQ(arguments("<parameter=a>\nx = '</parameter>' + y\n</parameter>\n"), R"({"a":"x = '</parameter>' + y"})");
  EXPECT_EQ(arguments("<parameter=a>\n1\n"), R"({"a":"1"})");
  EXPECT_EQ(arguments("noise <parameter=a>1</parameter>"), R"({"a":"1"})");
  EXPECT_EQ(parse("<tool_call>\n<function=a>\n<parameter=x>\n1\n</parameter>\n</tool_call>", xml()),
            (Parsed{"", {{"a", R"({"x":"1"})"}}}));
  EXPECT_EQ(parse("<tool_call>\n<function=a></function>\n<function=b></function></tool_call>", xml()),
            (Parsed{"", {{"a", "{}"}, {"b", "{}"}}}));
}

// What cannot be read as a call is given as it was written, and the stream goes on.
TEST(ToolCallParser, UnreadableCallsStayText) {
  EXPECT_EQ(parse("see <tool_call>\nnothing\n</tool_call> ok", xml()),
            (Parsed{"see <tool_call>\nnothing\n</tool_call> ok", {}}));
  EXPECT_EQ(parse("<tool_call>{\"name\": 5}</tool_call>", hermes()),
            (Parsed{"<tool_call>{\"name\": 5}</tool_call>", {}}));
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>", hermes()),
            (Parsed{"<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>", {}}));
}

// The stream is cut in mid-call: what is complete counts.
TEST(ToolCallParser, CutCalls) {
  EXPECT_EQ(parse("<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nhal", xml()),
            (Parsed{"", {{"f", R"({"a":"1"})"}}}));
  EXPECT_EQ(parse("x <tool_call>\n<func", xml()), (Parsed{"x <tool_call>\n<func", {}}));
  EXPECT_EQ(parse("x <tool_c", xml()), (Parsed{"x <tool_c", {}}));
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"argum", hermes()),
            (Parsed{"<tool_call>{\"name\": \"f\", \"argum", {}}));
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": {}}", hermes()), (Parsed{"", {{"f", "{}"}}}));
}

TEST(ToolCallParser, HermesJson) {
  EXPECT_EQ(parse("Sure.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": \"</x>\", \"a\": [1, 2.5, "
                  "null]}}\n</tool_call>",
                  hermes()),
            (Parsed{"Sure.", {{"f", R"({"b":"</x>","a":[1,2.5,null]})"}}}));
  EXPECT_EQ(parse(R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)", hermes()),
            (Parsed{"", {{"f", R"({"a":1})"}}}));
  EXPECT_EQ(
      parse(R"(<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "g", "parameters": {"k": true}}</tool_call>)",
            hermes()),
      (Parsed{"", {{"f", "{}"}, {"g", R"({"k":true})"}}}));
}

TEST(ToolCallParser, QuotedTagIsText) {
  ToolCallFormat format = xml();
  format.open.token = 86;
  format.close.token = 87;
  const std::vector<OutputPiece> pieces = {{"write <tool_call> like this: ", 1},
                                           {"<tool_call>", 86},
                                           {"\n<function=say>\n<parameter=t>\n", 2},
                                           {"</tool", 3},
                                           {"_call>", 4},
                                           {"\n</parameter>\n</function>\n", 5},
                                           {"</tool_call>", 87}};
  EXPECT_EQ(parse(pieces, format), (Parsed{"write <tool_call> like this:", {{"say", R"({"t":"</tool_call>"})"}}}));
}

TEST(ToolCallParser, WithoutToolsAllIsText) {
  EXPECT_EQ(parse(" <tool_call>{}</tool_call> \n", {}), (Parsed{" <tool_call>{}</tool_call> \n", {}}));
}

TEST(ToolCallParser, DeepJsonIsRefused) {
  const std::string deep =
      "{\"name\": \"f\", \"arguments\": {\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}}";
  EXPECT_TRUE(parse("<tool_call>" + deep + "</tool_call>", hermes()).calls.empty());
}

// A run of closing tags must not cost quadratic time.
TEST(ToolCallParser, ManyClosingTags) {
  std::string value = "<parameter=a>\n";
  for (int i = 0; i < 100000; ++i) value += "</parameter>";
  EXPECT_EQ(parse(ship(value + " end\n</parameter>\n"), xml()).calls.size(), 1u);
}

TEST(ToolCallParser, IndependentOfPieces) {
  const std::string text =
      "Prose \n<tool_call>\n<function=f>\n<parameter=k>\nv < "
      "w\n</parameter>\n</function>\n</tool_call>\n<tool_call>broken</tool_call> <tool";
  const Parsed whole = parse(text, xml());
  EXPECT_EQ(whole.calls.size(), 1u);
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<OutputPiece> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(random() % 9, text.size() - at);
      pieces.push_back({text.substr(at, size), -1});
      at += size;
    }
    EXPECT_EQ(parse(pieces, xml()), whole);
  }
}

TEST(ToolCallForm, SeenInTheTemplate) {
  EXPECT_EQ(tool_call_form("{{ '<tool_call>\\n<function=' + name }}"), ToolCallForm::kQwenXml);
  EXPECT_EQ(tool_call_form(R"({{ '<tool_call>\n{"name": "' + name + '", "arguments": ' }})"), ToolCallForm::kHermes);
  EXPECT_EQ(tool_call_form("{{ messages }}"), ToolCallForm::kNone);
}

}  // namespace
}  // namespace crest::text
