import Foundation
import Testing

@testable import TestSupport

/// The recipe of the article *Checking a module before it is shipped*.
@Suite(.timeLimit(.minutes(30))) struct SanitizerTests: Checking {
    /// The runtime of the address sanitizer; `nil` if there is none.
    private static let runtime: String? = {
        let path = try? Tool("clang")?.run(["-print-file-name=libclang_rt.asan-x86_64.so"])
        return path.map { $0.trimmingCharacters(in: .newlines) }.flatMap { access($0, R_OK) == 0 ? $0 : nil }
    }()

    @Test(.disabled(if: runtime == nil || isSanitized, "There is no runtime to load."))
    func `A module is checked under the address sanitizer`() throws {
        var module = CModule()
        module.body = "volatile char *volatile text = malloc(8); text[8] = 1; free((void *)text);"
        let file = try module.build(["-g", "-fsanitize=address", "-shared-libasan"])
        let outcome = try program().run(
            ["check", file, "--trust", "--no-calls"], environment: environment)
        #expect(outcome.code == 0, "\(outcome)")
        let called = try program().run(["check", file, "--trust"], environment: environment)
        #expect(
            called.code == 65 && called.output.contains("FAILURE  replies      It crashes the process at Good/answer"))
        #expect(called.errors.contains("AddressSanitizer: heap-buffer-overflow"), "\(called)")
    }

    private var environment: [String: String] {
        ["ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0", "LD_PRELOAD": Self.runtime ?? ""]
    }
}
