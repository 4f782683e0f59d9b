/// The source of a new module in C.
enum CTemplate {
    static func source(_ name: ModuleName) -> String {
        #"""
        #include "plugin_abi.h"
        #include <stdlib.h>

        static const plugin_host *host;

        static const char manifest[] =
            "{\"name\": \"\#(name.text)\", \"version\": \"0.1.0\", \"targets\": [{\"name\": \"\#(name.text)\", \"actions\": ["
            "  {\"name\": \"greet\", \"summary\": \"Greets somebody by name.\", \"remote\": true, \"result\": \"string\","
            "   \"parameters\": [{\"name\": \"name\", \"type\": \"string\", \"required\": true}]}]}],"
            " \"routes\": [{\"pattern\": \"app://\#(name.host)/greet/:name\", \"action\": \"\#(name.text)/greet\","
            "   \"name\": \"\#(name.text).greet\", \"summary\": \"A greeting.\"}]}";

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
            .manifest = PLUGIN_STRING_INIT(manifest),
            .functions = functions,
            .function_count = sizeof functions / sizeof *functions,
            .activate = activate,
        };

        PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) { return &module; }

        """#
    }
}
