// A module in C++: it uses one header, and links only against the standard library.
//
//     g++ -std=c++20 -O2 -shared -fPIC -fvisibility=hidden -I ../../Sources/CPluginABI/include -o libWords.so Words.cpp
//
// (clang++ accepts the same arguments. To compile in another folder, pass the folder of Words.json with -I.)
#include "plugin_abi.h"

#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

PLUGIN_MANIFEST_FILE("Words.json"); // defines PLUGIN_MANIFEST, which the description below uses

namespace {

const plugin_host *host;

// -------------------------------------------------------------------- the boundary, once for all actions

std::string_view text(const plugin_value &value) { return {value.as.string, value.count}; }

plugin_string borrow(std::string_view text) { return {text.data(), text.size()}; }

// An exception with which an action chooses the code of its error.
struct Refusal : std::runtime_error {
    std::string code;
    Refusal(std::string code, const std::string &message) : std::runtime_error(message), code(std::move(code)) {}
};

// The function that the host calls for an action. An exception must not cross the boundary: it becomes the error of the
// call. The host borrows the result until plugin_reply returns, so the action itself replies, while its strings are
// alive.
template <void (*action)(const plugin_call &, const plugin_value *)>
void guarded(void *, const plugin_call *call, const plugin_value *arguments, uint32_t) noexcept {
    try {
        action(*call, arguments);
    } catch (const Refusal &refusal) {
        plugin_fail(host, call, refusal.code.c_str(), refusal.what());
    } catch (const std::exception &error) {
        plugin_fail(host, call, "actionFailed", error.what());
    } catch (...) {
        plugin_fail(host, call, "actionFailed", "An exception was thrown that is not a std::exception.");
    }
}

void reply(const plugin_call &call, const plugin_value &value) { plugin_reply(host, &call, value); }

// ------------------------------------------------------------------------------------------- the actions

// Words/count: returns how often each word occurs in a text, as a map.
void count(const plugin_call &call, const plugin_value *arguments) {
    std::map<std::string, int64_t> counts;
    std::istringstream words{std::string(text(arguments[0]))};
    for (std::string word; words >> word;) counts[word]++;

    plugin_entry entries[64]; // Their keys point into `counts`, which lives until this function returns.
    uint32_t used = 0;
    for (const auto &[word, number] : counts) {
        if (used == 64) throw Refusal("tooMany", "The text has more than 64 different words.");
        entries[used++] = {borrow(word), plugin_value_int(number)};
    }
    reply(call, plugin_value_map(entries, used));
}

// The instance of the target Glossary: made when the host first needs it, and used from any thread.
class Glossary {
  public:
    void define(std::string_view word, std::string_view meaning) {
        std::lock_guard lock(mutex);
        meanings.insert_or_assign(std::string(word), std::string(meaning));
    }
    std::string meaning(std::string_view word) {
        std::lock_guard lock(mutex);
        auto found = meanings.find(std::string(word));
        if (found == meanings.end()) throw Refusal("unknownWord", "Nobody has defined “" + std::string(word) + "”.");
        return found->second;
    }

  private:
    std::mutex mutex;
    std::map<std::string, std::string> meanings;
};

Glossary &glossary(const plugin_call &call) { return *static_cast<Glossary *>(call.instance); }

void define(const plugin_call &call, const plugin_value *arguments) {
    glossary(call).define(text(arguments[0]), text(arguments[1]));
    reply(call, plugin_value_null());
}

void meaning(const plugin_call &call, const plugin_value *arguments) {
    const std::string meaning = glossary(call).meaning(text(arguments[0]));
    reply(call, plugin_value_string(meaning.data(), static_cast<uint32_t>(meaning.size())));
}

// ----------------------------------------------------------------------------------------- the description

const plugin_function functions[] = {
    {PLUGIN_STRING_INIT("Words/count"), guarded<count>, nullptr},
    {PLUGIN_STRING_INIT("Glossary/define"), guarded<define>, nullptr},
    {PLUGIN_STRING_INIT("Glossary/meaning"), guarded<meaning>, nullptr},
};

const plugin_factory factories[] = {{
    PLUGIN_STRING_INIT("Glossary"),
    [](void *, const plugin_call *) -> void * { return new (std::nothrow) Glossary; },
    [](void *, void *instance) { delete static_cast<Glossary *>(instance); },
    nullptr,
}};

const plugin_module module{
    .magic = PLUGIN_ABI_MAGIC,
    .size = sizeof(plugin_module),
    .abi_major = PLUGIN_ABI_MAJOR,
    .abi_minor = PLUGIN_ABI_MINOR,
    .toolchain = {}, // The module needs no Swift runtime.
    .manifest = PLUGIN_MANIFEST,
    .functions = functions,
    .function_count = std::size(functions),
    .factories = factories,
    .factory_count = std::size(factories),
    .data = nullptr,
    .activate = [](void *, const plugin_host *table) -> int32_t {
        host = table;
        return 0;
    },
    .deactivate = nullptr,
    .get_extension = nullptr,
};

} // namespace

PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry() { return &module; }
