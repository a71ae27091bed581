#include "backend/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "scenarios/language/config_error.h"
#include "tests/backend/checkpoint/saved_state.h"

namespace headway::backend {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Safetensors : public ::testing::Test {
  protected:
    std::filesystem::path file() const { return folder_.path() / "some.safetensors"; }

    void write(const std::string& content) const { std::ofstream(file(), std::ios::binary) << content; }
    void write(const std::string& header, std::size_t data, std::uint64_t length) const {
        std::string content(8, '\0');
        std::memcpy(content.data(), &length, 8);
        write(content + header + std::string(data, 'x'));
    }
    void write(const std::string& header, std::size_t data) const { write(header, data, header.size()); }

    SafetensorsHeader read() const { return read_safetensors_header(PlainFile::open(file())); }
    std::string error() const {
        try {
            read();
        } catch (const scenarios::ConfigError& error) {
            EXPECT_THAT(error.what(), StartsWith(file().string() + ": "));
            return error.what();
        }
        return "no error";
    }

    ScratchFolder folder_;
};

/// As the Python library writes them.
TEST_F(Safetensors, ReadsNamesTypesShapesAndOffsets) {
    write(
        R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
        R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"c":{"dtype":"I64","shape":[],"data_offsets":[28,36]}}  )",
        36);
    const SafetensorsHeader header = read();
    ASSERT_EQ(header.entries.size(), 3U);
    EXPECT_EQ(header.entries[0].name, "a") << "in the order of the data";
    EXPECT_EQ(header.metadata.at("format"), "pt");
    const SafetensorsEntry& b = *header.find("b");
    EXPECT_EQ(b.dtype, "F32");
    EXPECT_EQ(b.shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(b.begin, 4);
    EXPECT_EQ(b.end, 28);
    EXPECT_EQ(header.find("c")->elements(), 1) << "a scalar";
    EXPECT_EQ(header.data + 36, PlainFile::open(file()).size());
    EXPECT_EQ(header.find("d"), nullptr);
}

TEST_F(Safetensors, ReadsWhatItWrites) {
    std::vector<SafetensorsEntry> entries = {{"z", "F64", {3, 1}}, {"empty", "F32", {0, 7}}, {"a", "F16", {5}}};
    write(safetensors_beginning(entries, {{"format", "pt"}}) + std::string(34, 'x'));
    const SafetensorsHeader header = read();
    EXPECT_EQ(header.data % 8, 0);
    EXPECT_EQ(header.metadata.at("format"), "pt");
    for (const SafetensorsEntry& entry : entries) {
        const SafetensorsEntry& read_back = *header.find(entry.name);
        EXPECT_EQ(std::tie(read_back.dtype, read_back.shape, read_back.begin, read_back.end),
                  std::tie(entry.dtype, entry.shape, entry.begin, entry.end));
    }
    EXPECT_EQ(header.entries.back().name, "a");
    EXPECT_THROW(safetensors_beginning(entries = {{"a", "F16", {5}}, {"a", "F16", {5}}}, {}), std::invalid_argument);
}

TEST_F(Safetensors, RefusesWhatIsNoneOrIsCut) {
    write("1234567");
    EXPECT_THAT(error(), HasSubstr("7 bytes"));
    write("", 0, 100'000'001);
    EXPECT_THAT(error(), HasSubstr("a header of 100000001 bytes (at most 100 MB)"));
    write("", 0, ~std::uint64_t{0});
    EXPECT_THAT(error(), HasSubstr("a header of 18446744073709551615 bytes"));
    write("{}", 0, 3);
    EXPECT_THAT(error(), HasSubstr("cut within its header"));
    write("[]", 0);
    EXPECT_THAT(error(), HasSubstr("no JSON object"));
    write("", 0, 0);
    EXPECT_THAT(error(), HasSubstr("no JSON object"));
    write("{\"a\":", 0);
    EXPECT_THAT(error(), HasSubstr("not a safetensors file: "));
    write("{\"\xff\": 1}", 0);
    EXPECT_THAT(error(), HasSubstr("not a safetensors file: "));
    write("{\"a\":" + std::string(100'000, '['), 0);
    EXPECT_THAT(error(), HasSubstr("not a safetensors file: "));
    write(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7);
    EXPECT_THAT(error(), HasSubstr("is cut: 7 bytes of data where its header says 8"));
    write(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9);
    EXPECT_THAT(error(), HasSubstr("1 bytes more than its header says"));
}

TEST_F(Safetensors, RefusesEntriesThatAreWrong) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"({"a":[]})", "tensor 'a' is no object"},
        {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "tensor 'a' has no 'dtype'"},
        {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", "unknown key 'more'"},
        {R"({"a":{"dtype":32,"shape":[2],"data_offsets":[0,8]}})", "dtype is no text"},
        {R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "unknown dtype 'F33'"},
        {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "shape is no list"},
        {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "shape: -2 is no count"},
        {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "shape: 2.0 is no count"},
        {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", "is no count"},
        {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,8]}})",
         "too large to exist"},
        {R"({"a":{"dtype":"F32","shape":[9223372036854775807,0],"data_offsets":[0,8]}})", "too large to exist"},
        {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "data_offsets are no range"},
        {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "data_offsets are no range"},
        {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "8 bytes of data do not make F32 [3]"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
         "'a' comes twice"},
        {R"({"a":{"dtype":"F32","dtype":"I32","shape":[2],"data_offsets":[0,8]}})", "'dtype' comes twice"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
         "'b' overlap"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F16","shape":[1],"data_offsets":[6,8]}})",
         "a gap before the data of tensor 'b'"},
        {R"({"__metadata__":{"a":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "'a' is no text"},
        {R"({"__metadata__":[],"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "__metadata__ is no object"},
    };
    for (const auto& [header, complaint] : cases) {
        write(header, 8);
        EXPECT_THAT(error(), HasSubstr(complaint)) << header;
    }
}

/// Whatever byte of a header is changed: it is refused, or what it says still fits the file.
TEST_F(Safetensors, SurvivesAnyChangedByte) {
    std::vector<SafetensorsEntry> entries = {{"first", "F32", {2, 3}}, {"second", "BF16", {4}}};
    const std::string whole = safetensors_beginning(entries, {{"format", "pt"}}) + std::string(32, 'x');
    for (std::size_t i = 0; i < whole.size() - 32; ++i)
        for (const int flip : {1, 16, 128}) {
            std::string changed = whole;
            changed[i] = static_cast<char>(changed[i] ^ flip);
            write(changed);
            try {
                std::int64_t bytes = 0;
                for (const SafetensorsEntry& entry : read().entries)
                    bytes += entry.elements() * safetensors_element_size(entry.dtype);
                EXPECT_EQ(bytes, 32);
            } catch (const scenarios::ConfigError&) {
            }
        }
}

}  // namespace
}  // namespace headway::backend
