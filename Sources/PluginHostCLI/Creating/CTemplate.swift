/// The files of a new module in C, which `make` builds.
enum CTemplate {
    static func files(_ name: ModuleName, headers: String) -> [(path: String, text: String)] {
        [
            ("\(name.text).c", source(name)),
            ("\(name.text).json", ManifestTemplate.text(name)),
            (
                "Makefile",
                MakefileTemplate.text(
                    name, source: "\(name.text).c", compiler: "$(CC) -std=c11", flags: "CFLAGS", headers: headers)
            ),
            ("README.md", MakefileTemplate.readme(name)),
            (".gitignore", "build/\n"),
        ]
    }

    private static func source(_ name: ModuleName) -> String {
        #"""
        #include "plugin_abi.h"
        #include <stdlib.h>

        PLUGIN_MANIFEST_FILE("\#(name.text).json");

        static const plugin_host *host;

        /* The host has checked that there is one parameter, a string. Strings are not NUL-terminated. */
        static void greet(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
            (void)data, (void)count;
            const size_t size = (size_t)arguments[0].count + sizeof "Hello, !";
            char *text = malloc(size);
            if (!text) {
                plugin_fail(host, call, "noMemory", "There is no memory for a greeting.");
                return;
            }
            size_t length = 0;
            for (const char *part = "Hello, "; *part; part++) text[length++] = *part;
            for (uint32_t index = 0; index < arguments[0].count; index++) text[length++] = arguments[0].as.string[index];
            text[length++] = '!';
            plugin_reply(host, call, plugin_value_string(text, (uint32_t)length));
            free(text);
        }

        static int32_t activate(void *data, const plugin_host *table) {
            (void)data;
            host = table;
            return 0;
        }

        static const plugin_function functions[] = {{PLUGIN_STRING_INIT("\#(name.text)/greet"), greet, NULL}};

        static const plugin_module module = {
            .magic = PLUGIN_ABI_MAGIC,
            .size = sizeof module,
            .abi_major = PLUGIN_ABI_MAJOR,
            .abi_minor = PLUGIN_ABI_MINOR,
            .manifest = PLUGIN_MANIFEST,
            .functions = functions,
            .function_count = sizeof functions / sizeof *functions,
            .activate = activate,
        };

        PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) { return &module; }

        """#
    }
}
