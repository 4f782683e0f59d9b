import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// How many modules and files a change of one file has to examine.
@Suite(.timeLimit(.minutes(30))) struct WorkOfChangesTests {
    /// A sealed module whose number is in a few bytes of its file.
    private let template: Data

    init() throws {
        let module = CModule(
            name: "Mod000", isSealed: true,
            moreManifest: """
                "routes": [{"pattern": "app://Mod000", "action": "Mod000/answer"}],
                "services": [{"name": "Service-Mod000", "version": "1.0.0", "target": "Mod000"}],
                """)
        template = try Data(contentsOf: URL(filePath: module.build()))
    }

    private func write(_ number: Int, to folder: String) throws {
        var bytes = template
        let digits = Data(String(1000 + number).utf8.dropFirst())
        while let place = bytes.range(of: Data("Mod000".utf8)) {
            bytes.replaceSubrange(place.upperBound - 3..<place.upperBound, with: digits)
            bytes.replaceSubrange(place.lowerBound..<place.lowerBound + 1, with: Data("N".utf8))
        }
        let path = "\(folder)/.new"
        try bytes.write(to: URL(filePath: path))
        guard rename(path, "\(folder)/m\(number).so") == 0 else { throw POSIXError(.EIO) }
    }

    /// The work for adding a module, calling it, and removing it.
    private func work(beside count: Int, isLazy: Bool) throws -> [Int] {
        let host = try TestHost { configuration, folder in
            configuration.watches = true
            if isLazy { configuration.start = .lazy }
            for number in 1...count { try write(number, to: "\(folder.path)/plugins") }
        }
        defer { host.host.shutdown() }
        try host.start()
        var last = host.host.lifecycle.examined
        func work() -> [Int] {
            defer { last = host.host.lifecycle.examined }
            let now = host.host.lifecycle.examined
            return [now.files - last.files, now.modules - last.modules]
        }
        var figures: [Int] = []
        try write(999, to: host.plugins)
        #expect(eventually { host.states["m999.so"] == (isLazy ? "registered" : "active") })
        figures += work()
        #expect(host.answer("Nod999") == "yes")
        figures += work()
        let answer = try host.host.open("app://Nod999").string
        #expect(answer == "yes")
        try FileManager.default.removeItem(atPath: "\(host.plugins)/m999.so")
        #expect(eventually { host.states["m999.so"] == nil })
        figures += work()
        return figures
    }

    @Test(.disabled(if: modulesAreIsolated, "There would be hundreds of processes."), arguments: [false, true])
    func `A change of one file is as much work beside many modules as beside few`(isLazy: Bool) throws {
        // The kernel may report a change in parts, each of which is examined.
        for count in [10, 200] {
            let figures = try work(beside: count, isLazy: isLazy)
            #expect(figures.allSatisfy { $0 <= 20 }, "beside \(count): \(figures)")
        }
    }
}
