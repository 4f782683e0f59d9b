/// The makefile of a new module in C or C++.
enum MakefileTemplate {
    /// - Parameters:
    ///   - compiler: The command of the compiler, with the options that the source needs.
    ///   - flags: The name of the variable for more options.
    ///   - headers: The options that find the header, as a value of a variable.
    static func text(
        _ name: ModuleName, source: String, compiler: String, flags: String, headers: String
    ) -> String {
        """
        # make          builds the module
        # make test     checks it in a host, and calls it
        # make install  copies it to the folder PLUGINS

        HEADERS := \(headers)
        \(flags) ?= -O2 -g -Wall -Wextra
        PLUGINHOST ?= pluginhost
        PLUGINS ?= plugins

        build/lib\(name.text).so: \(source) \(name.text).json Makefile
        \t@mkdir -p build
        \t\(compiler) $(\(flags)) -shared -fPIC -I . $(HEADERS) -MMD -MP -MF build/dependencies.d $(LDFLAGS) -o $@ $<

        -include build/dependencies.d

        test: build/lib\(name.text).so
        \t$(PLUGINHOST) check $<
        \ttest "$$($(PLUGINHOST) call --plugins build \(name.text) greet name=Ada)" = "Hello, Ada!"

        install: build/lib\(name.text).so
        \tinstall -D -m 755 -t $(PLUGINS) $<

        clean:
        \trm -rf build

        .PHONY: test install clean

        """
    }

    static func readme(_ name: ModuleName) -> String {
        ReadmeTemplate.text(
            name,
            [
                ("make", "builds it"),
                ("make test", "checks it before you ship it, and calls it"),
                ("make install", "installs it in a plugins folder"),
                ("pluginhost call \(name.text) greet name=Ada", "calls it"),
            ])
    }

    /// Returns a path as a word of a command in a makefile.
    static func quoted(_ path: String) -> String {
        let word = path.replacing("'", with: "'\\''").replacing("$", with: "$$").replacing("#", with: "\\#")
        return "'\(word)'"
    }
}
