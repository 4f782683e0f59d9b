import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// What tools do to a folder: in the end, the last version serves.
@Suite(.timeLimit(.minutes(30)), .serialized) struct FolderToolsTests {
    let test: TestHost
    private let first = StressModule.numbers.lowerBound

    init() throws {
        test = try TestHost()
        try StressModule(place: 0, number: first).put(into: test.plugins, as: "module.so")
        try test.start()
    }

    private func bytes(_ number: Int) throws -> Data { try StressModule(place: 0, number: number).bytes() }
    private var path: String { "\(test.plugins)/module.so" }

    private func serves(_ number: Int, _ place: Int = 0) -> Bool {
        eventually {
            (try? test.host.perform(StressModule.name(place), "answer", [1]))?.string
                == StressModule.answer(place, number, 1)
        }
    }

    @Test func `A file can be written in place twice within one tick of the file system's clock`() throws {
        for round in 0..<20 {
            try StressModule.write(bytes(first + 2 * round + 1), to: path)
            if round % 2 == 0 { _ = serves(first + 2 * round + 1) }
            try StressModule.write(bytes(first + 2 * round + 2), to: path)
            #expect(serves(first + 2 * round + 2))
        }
    }

    @Test func `Of files that are replaced every millisecond, the last one serves`() throws {
        for number in first + 1...first + 200 {
            try StressModule(place: 0, number: number).put(into: test.plugins, as: "module.so")
            usleep(1000)
        }
        #expect(serves(first + 200))
        #expect(!test.changes.contains { $0.isFailure })
    }

    @Test func `A file can be unlinked and written again, as install does`() throws {
        for number in first + 1...first + 5 {
            unlink(path)
            try StressModule.write(bytes(number), to: path, O_EXCL)
            #expect(serves(number))
        }
    }

    @Test func `A file can be moved to a backup and written again, as editors do`() throws {
        rename(path, "\(path)~")
        try StressModule.write(bytes(first + 1), to: path)
        unlink("\(path)~")
        #expect(serves(first + 1))
    }

    @Test func `A file can be written in many small pieces`() throws {
        let whole = try bytes(first + 1)
        unlink(path)
        for start in stride(from: 0, to: whole.count, by: 4096) {
            let piece = whole.subdata(in: start..<min(start + 4096, whole.count))
            try StressModule.write(piece, to: path, O_APPEND)
        }
        #expect(serves(first + 1))
    }

    @Test func `A link can be switched to another version`() throws {
        let releases = try test.folder.folder("releases")
        for number in first + 1...first + 3 {
            try StressModule(place: 1, number: number).put(into: releases, as: "\(number).so")
            symlink("\(releases)/\(number).so", "\(test.plugins)/.linked")
            rename("\(test.plugins)/.linked", "\(test.plugins)/linked.so")
            #expect(serves(number, 1))
        }
    }

    @Test func `A folder can be moved away with everything in it, and back`() throws {
        let away = "\(test.folder.path)/away"
        rename(test.plugins, away)
        #expect(eventually { !test.host.problems.isEmpty })
        try StressModule(place: 0, number: first + 1).put(into: away, as: "module.so")
        #expect(serves(first))
        rename(away, test.plugins)
        #expect(serves(first + 1))
        #expect(!test.changes.contains { $0.isRemoval })
    }

    @Test func `Names can contain newlines, spaces and quotes`() throws {
        for (place, name) in ["a\nb.so", "a b.so", "'\"$(x).so", "-rf.so", "ä😀.so"].enumerated() {
            try StressModule(place: 10 + place, number: first).put(into: test.plugins, as: name)
            #expect(serves(first, 10 + place))
            unlink("\(test.plugins)/\(name)")
            #expect(eventually { test.status(name) == nil })
        }
    }

    @Test func `A thousand files can be added at once, most of which are not modules`() throws {
        let away = "\(test.folder.path)/many"
        try FileManager.default.copyItem(atPath: test.plugins, toPath: away)
        for place in 1..<100 {
            try StressModule(place: place, number: first).put(into: away, as: "\(place).so")
        }
        for number in 0..<900 { try StressModule.write(Data("no \(number)".utf8), to: "\(away)/no\(number).so") }
        for name in try FileManager.default.contentsOfDirectory(atPath: away) {
            rename("\(away)/\(name)", "\(test.plugins)/\(name)")
        }
        for place in 1..<100 { #expect(serves(first, place)) }
        #expect(eventually { test.states.values.count { $0 == "failed" } == 900 })
    }
}
