import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI

@Suite struct ArgumentParserTests {
    private static let flag = OptionSpecification(name: "--flag", help: "A flag.")
    private static let folder = OptionSpecification(name: "--folder", value: "dir", repeats: true, help: "A folder.")
    private static let number = OptionSpecification(name: "--number", value: "n", help: "A number.")
    private let parser = ArgumentParser(
        command: CommandSpecification(
            name: "test", overview: "Test.",
            arguments: [
                ArgumentSpecification(name: "first", help: "The first."),
                ArgumentSpecification(name: "rest", isRequired: false, repeats: true, help: "The rest."),
            ],
            options: [flag, folder, number]))

    @Test func `options and arguments may be mixed`() throws {
        let parsed = try parser.parse(["a", "--folder", "x", "b", "--flag", "--folder=y=z", "-"])
        #expect(parsed.positionals == ["a", "b", "-"])
        #expect(parsed.values(of: Self.folder) == ["x", "y=z"])
        #expect(parsed.has(Self.flag))
        #expect(!parsed.has(Self.number))
    }

    @Test func `two dashes end the options`() throws {
        #expect(try parser.parse(["--", "--flag", "--"]).positionals == ["--flag", "--"])
    }

    @Test func `a value may begin with one dash, but not with two`() throws {
        #expect(try parser.parse(["a", "--number", "-5"]).value(of: Self.number) == "-5")
        #expect(throws: PluginError(.usage, "Missing value for '--number <n>'.")) {
            try parser.parse(["a", "--number", "--flag"])
        }
        #expect(throws: PluginError(.usage, "Missing value for '--number <n>'.")) {
            try parser.parse(["a", "--number"])
        }
        #expect(try parser.parse(["a", "--number=--flag"]).value(of: Self.number) == "--flag")
    }

    @Test func `the last of several values counts`() throws {
        #expect(try parser.parse(["a", "--number=1", "--number=2"]).value(of: Self.number) == "2")
    }

    @Test func `whole numbers must be in their range, and the error shortens a long value`() throws {
        func number(_ text: String) throws -> Int? {
            try parser.parse(["a", "--number=\(text)"]).wholeNumber(of: Self.number, "bytes", in: 2...40)
        }
        #expect(try parser.parse(["a"]).wholeNumber(of: Self.number, in: 2...40) == nil)
        for text in ["2", "40"] { #expect(try number(text) == Int(text)) }
        for text in ["1", "41", "-3", "2.5", "1e1", "x", "", " 3", String(repeating: "9", count: 100_000)] {
            #expect(
                throws: PluginError(
                    .usage, "The value '\(text.shortened)' of '--number' is not a whole number of bytes from 2 to 40.")
            ) { try number(text) }
        }
        let largest = try parser.parse(["a", "--number", "\(UInt64.max)"])
        #expect(try largest.wholeNumber(of: Self.number, in: 0...UInt64.max) == .max)
        #expect(throws: PluginError.self) { try largest.wholeNumber(of: Self.number, in: 0...Int.max) }
    }

    @Test func `an unknown option is an error with a suggestion`() {
        #expect(throws: PluginError(.usage, "Unknown option '--flog'. Did you mean “--flag”?")) {
            try parser.parse(["--flog"])
        }
        #expect(throws: PluginError(.usage, "Unknown option '-x'.")) { try parser.parse(["-x"]) }
    }

    @Test func `a flag takes no value`() {
        #expect(throws: PluginError(.usage, "The option '--flag' takes no value.")) { try parser.parse(["--flag=1"]) }
    }

    @Test func `missing and surplus arguments are errors`() {
        #expect(throws: PluginError(.usage, "Missing expected argument '<first>'.")) { try parser.parse([]) }
        let narrow = ArgumentParser(command: CommandSpecification(name: "narrow", overview: "Narrow."))
        #expect(throws: PluginError(.usage, "Unexpected argument 'x'.")) { try narrow.parse(["x"]) }
    }

    @Test(arguments: ["-h", "--help"]) func `help takes precedence over missing arguments`(option: String) throws {
        #expect(try parser.parse([option]).has(.help))
    }

    @Test func `the method of a URL is passed on only if it is given, since older hosts do not know it`() throws {
        let url = ["app://a/b", "--method", "POST"]
        for count in [1, 3] {
            let opened = try Open.parameters(ArgumentParser(command: Open.specification).parse(Array(url[..<count])))
            let resolved = Resolve.parameters(
                try ArgumentParser(command: Resolve.specification).parse(Array(url[..<count])))
            #expect(opened["method"] == (count == 1 ? nil : "POST"))
            #expect(resolved["method"] == (count == 1 ? nil : "POST"))
        }
    }

    @Test func `folders come from the options, then from the environment, then from the working folder`() throws {
        let given = try ArgumentParser(command: List.specification).parse(["--plugins", "a", "--plugins=b"])
        let none = ParsedArguments()
        let environment = ["PLUGINHOST_PATH": "/x::/y"]
        #expect(try given.folders(environment: environment) == ["a", "b"])
        #expect(try none.folders(environment: environment) == ["/x", "/y"])
        #expect(try none.folders(environment: ["PLUGINHOST_PATH": ""]) == ["./plugins"])
        #expect(try none.folders(environment: [:]) == ["./plugins"])
    }

    @Test(arguments: ["0", "-1", "x", "nan", "inf", "1e300", ""])
    func `a timeout is a positive number`(text: String) throws {
        let parsed = try ArgumentParser(command: Call.specification).parse(["A", "b", "--timeout=\(text)"])
        #expect(throws: PluginError.self) { try parsed.timeout }
    }

    @Test func `a timeout may have a fraction`() throws {
        let parsed = try ArgumentParser(command: Call.specification).parse(["A", "b", "--timeout=0.25"])
        #expect(try parsed.timeout == .milliseconds(250))
    }

    @Test func `schemes are checked`() throws {
        let bad = try ArgumentParser(command: List.specification).parse(["--scheme", "a b"])
        #expect(throws: PluginError.self) { try bad.configuration(environment: [:]) { _ in } }
        let good = try ArgumentParser(command: List.specification).parse(["--scheme", "X-1", "--scheme", "y"])
        #expect(try good.configuration(environment: [:]) { _ in }.schemes == ["x-1", "y"])
    }

    @Test func `parameters are read as JSON if possible, otherwise as text`() throws {
        let words = ["A", "b", "n=2", "s=x", "q=\"2\"", "e=", "l=[1,true]", "x=a=b", "z=null"]
        let call = try Call.parameters(ArgumentParser(command: Call.specification).parse(words))
        let expected: [String: Value] = [
            "n": 2, "s": "x", "q": "2", "e": "", "l": [1, true], "x": "a=b", "z": nil,
        ]
        #expect(call["parameters"] == .map(expected))
    }

    @Test(arguments: [["x"], ["=1"], ["a=1", "a=2"]])
    func `a malformed or repeated parameter is a usage error`(words: [String]) throws {
        let parsed = try ArgumentParser(command: Call.specification).parse(["A", "b"] + words)
        let error = #expect(throws: PluginError.self) { try Call.parameters(parsed) }
        #expect(error?.code == .usage)
    }
}

@Suite struct ShellWordsTests {
    @Test(
        arguments: [
            ("", []), ("  ", []), ("a b", ["a", "b"]), ("a\tb\n", ["a", "b"]),
            ("call A b n='x y' m=\"z \\\"q\\\"\"", ["call", "A", "b", "n=x y", "m=z \"q\""]),
            ("'' \"\"", ["", ""]), ("a\\ b", ["a b"]), ("'a\\b'", ["a\\b"]), ("\"a\\nb\"", ["a\\nb"]),
        ] as [(String, [String])])
    func `a line is split into words as in a shell`(line: String, words: [String]) throws {
        #expect(try shellWords(line) == words)
    }

    @Test(arguments: ["'a", "\"a", "a\\"]) func `an unterminated quote or escape is an error`(line: String) {
        #expect(throws: PluginError.self) { try shellWords(line) }
    }
}
