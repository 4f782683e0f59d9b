import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// The examples in other languages pass, if there is a compiler for them.
@Suite(.timeLimit(.minutes(30))) struct CheckedSamplesTests: Checking {
    private func checkSample(_ compiler: String, _ arguments: [String]) throws {
        let folder = try TemporaryFolder()
        let library = "\(folder.path)/libSample.so"
        try #require(Tool(compiler)).run(arguments + ["-o", library])
        let (outcome, report) = try check(library)
        #expect(outcome.code == 0)
        for result in report["checks"]?.list ?? [] {
            #expect(result["outcome"] == "pass", "\(result)")
        }
        #expect(try check(library, "--isolate").report == report)
    }

    @Test(.enabled(if: Tool("g++") != nil)) func `the example in C++ passes every check`() throws {
        try checkSample(
            "g++",
            ["-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
                + ["-I", headers, "-I", "\(repository)/Examples/CPlusPlus"]
                + ["\(repository)/Examples/CPlusPlus/Words.cpp"])
    }

    @Test(.enabled(if: Tool("rustc") != nil)) func `the example in Rust passes every check`() throws {
        try checkSample(
            "rustc",
            ["--edition", "2021", "-O", "--crate-type", "cdylib", "\(repository)/Examples/Rust/tally.rs"])
    }
}
