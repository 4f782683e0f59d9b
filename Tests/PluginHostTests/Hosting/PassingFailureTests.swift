import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Failures that end when a scarce resource becomes available again.
@Suite struct PassingFailureTests {
    /// Runs in a separate process, whose descriptors are used up: with none left, the folder cannot be read; with one
    /// left, no file can be copied.
    @Test(arguments: [0, 1]) func `A file that is added while no descriptors are free is served once there are some`(
        free: Int
    ) async {
        await #expect(processExitsWith: .success) { [free = free as Int] in
            let test = try TestHost()
            let built = try CModule().build()
            try copyFile(built, to: "\(test.plugins)/.new")
            try test.start()
            let used = try useUpDescriptors(leaving: free)
            try #require(rename("\(test.plugins)/.new", "\(test.plugins)/Good.so") == 0)
            let hasFailed = eventually {
                !test.host.problems.isEmpty || test.host.modules.contains { $0.state == .failed }
            }
            try #require(hasFailed && test.answer() == nil)
            for descriptor in used { close(descriptor) }
            try #require(eventually { test.answer() == "yes" })
            try #require(eventually { test.host.problems.isEmpty })
        }
    }

    /// The descriptors that are left suffice to copy the file, but not to start its process.
    @Test(arguments: [4, 5]) func `An isolated module that is added while descriptors are scarce is served later`(
        free: Int
    ) async {
        await #expect(processExitsWith: .success) { [free = free as Int] in
            let test = try TestHost { configuration, _ in configuration.isolation.modules = .all }
            try copyFile(CModule().build(), to: "\(test.plugins)/.new")
            try test.start()
            let used = try useUpDescriptors(leaving: free)
            try #require(rename("\(test.plugins)/.new", "\(test.plugins)/Good.so") == 0)
            try #require(eventually { test.status("Good.so")?.state == .failed })
            for descriptor in used { close(descriptor) }
            try #require(eventually { test.answer() == "yes" })
        }
    }

    @Test func `An isolated module whose restarts have failed while descriptors were scarce is served later`() async {
        await #expect(processExitsWith: .success) {
            let test = try TestHost { configuration, _ in
                configuration.isolation.modules = .all
                configuration.isolation.restartPauses = [.zero]
            }
            try crashing.build(into: test.plugins, as: "bad.so")
            try test.start()
            try #require(test.answer("Bad") == "yes")
            let used = try useUpDescriptors(leaving: 0)
            try #require(test.code("Bad", "abort") == .moduleCrashed)
            try #require(eventually { test.status("bad.so")?.state == .failed })
            for descriptor in used { close(descriptor) }
            try #require(eventually { test.answer("Bad") == "yes" })
        }
    }
}
