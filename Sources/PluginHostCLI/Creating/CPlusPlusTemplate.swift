/// The files of a new module in C++, which `make` builds.
enum CPlusPlusTemplate {
    static func files(_ name: ModuleName, headers: String) -> [(path: String, text: String)] {
        [
            ("\(name.text).cpp", source(name)),
            ("\(name.text).json", ManifestTemplate.text(name)),
            (
                "Makefile",
                MakefileTemplate.text(
                    name, source: "\(name.text).cpp", compiler: "$(CXX) -std=c++20 -fvisibility=hidden",
                    flags: "CXXFLAGS", headers: headers)
            ),
            ("README.md", MakefileTemplate.readme(name)),
            (".gitignore", "build/\n"),
        ]
    }

    private static func source(_ name: ModuleName) -> String {
        #"""
        #include "plugin_abi.h"

        #include <exception>
        #include <iterator>
        #include <string>
        #include <string_view>

        PLUGIN_MANIFEST_FILE("\#(name.text).json");

        namespace {

        const plugin_host *host;

        // The host has checked that there is one parameter, a string.
        void greet(const plugin_call &call, const plugin_value *arguments) {
            const std::string_view name{arguments[0].as.string, arguments[0].count};
            const std::string text = "Hello, " + std::string(name) + "!";
            // Borrows `text`, which lives until plugin_reply has returned.
            plugin_reply(host, &call, plugin_value_string(text.data(), static_cast<uint32_t>(text.size())));
        }

        // The function that the host calls for an action. No exception may leave it.
        template <void (*action)(const plugin_call &, const plugin_value *)>
        void guarded(void *, const plugin_call *call, const plugin_value *arguments, uint32_t) noexcept {
            try {
                action(*call, arguments);
            } catch (const std::exception &exception) {
                plugin_fail(host, call, "actionFailed", exception.what());
            } catch (...) {
                plugin_fail(host, call, "actionFailed", "An exception was thrown that is not a std::exception.");
            }
        }

        int32_t activate(void *, const plugin_host *table) {
            host = table;
            return 0;
        }

        const plugin_function functions[] = {{PLUGIN_STRING_INIT("\#(name.text)/greet"), guarded<greet>, nullptr}};

        const plugin_module description{
            .magic = PLUGIN_ABI_MAGIC,
            .size = sizeof(plugin_module),
            .abi_major = PLUGIN_ABI_MAJOR,
            .abi_minor = PLUGIN_ABI_MINOR,
            .toolchain = {},
            .manifest = PLUGIN_MANIFEST,
            .functions = functions,
            .function_count = std::size(functions),
            .factories = nullptr,
            .factory_count = 0,
            .data = nullptr,
            .activate = activate,
            .deactivate = nullptr,
            .get_extension = nullptr,
        };

        } // namespace

        PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry() { return &description; }

        """#
    }
}
