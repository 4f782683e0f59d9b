import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Modules whose manifests are read from their files.
@Suite(.timeLimit(.minutes(30))) struct SealTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func run(_ arguments: String...) throws -> ProgramProcess.Outcome {
        try ProgramProcess(arguments).wait()
    }

    /// A module whose code ends the process as soon as it is opened.
    private func trap(version: String = "1.0.0") throws -> String {
        let name = "\(folder.path)/trap\(version)"
        let json = """
            {"name": "Trap", "version": "\(version)", "targets": [{"name": "T", "actions": [
                {"name": "say", "result": "string"}]}]}
            """
        try json.write(toFile: "\(name).json", atomically: true, encoding: .utf8)
        let source = """
            #include "plugin_abi.h"
            #include <stdlib.h>
            PLUGIN_MANIFEST_FILE("\(name).json");
            __attribute__((constructor)) static void start(void) { abort(); }
            static const plugin_module module = {.magic = PLUGIN_ABI_MAGIC, .manifest = PLUGIN_MANIFEST};
            PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) { return &module; }
            """
        let library = "\(name).so"
        try copyFile(CFixture.build(source), to: library)
        return library
    }

    private func change(_ path: String, _ change: (inout Data) throws -> Void) throws {
        var data = try Data(contentsOf: URL(filePath: path))
        try change(&data)
        try data.write(to: URL(filePath: path))
        chmod(path, 0o755)
    }

    @Test func `tools read a sealed file without running its code`() throws {
        let (old, new) = (try trap(), try trap(version: "1.1.0"))
        let report = try run("inspect", "--json", old)
        #expect(report.json?["sealed"] == true && report.json?["manifest"]?["name"] == "Trap", "\(report.errors)")
        let facade = try run("facade", old)
        #expect(facade.code == 0 && facade.output.contains("func say("), "\(facade.errors)")
        let diff = try run("diff", old, new)
        #expect(diff.output.contains("1.0.0 → 1.1.0"), "\(diff.errors)")
        let check = try run("check", "--no-calls", old)
        #expect(check.output.contains("read from its seal"), "\(check.output)")
        #expect(check.code == 65 && check.output.contains("FAILURE"))
    }

    @Test func `tools read a sealed file for another machine`() throws {
        let file = try trap()
        try change(file) { $0[18] = 183 }
        let report = try run("inspect", file)
        #expect(report.output.contains("for AArch64") && report.output.contains("say()"), "\(report.errors)")
        #expect(try run("facade", file).code == 0)
        let newer = try trap(version: "1.1.0")
        try change(newer) { $0[18] = 183 }
        let diff = try run("diff", file, newer)
        #expect(diff.code == 0 && diff.output.contains("1.0.0 → 1.1.0"), "\(diff)")
        // What does not need the code is checked; a host on this machine does not load the file.
        let check = try run("check", "--json", "--against", file, newer)
        let checks = try #require(check.json?["checks"]?.list)
        let results = Dictionary(uniqueKeysWithValues: checks.map { ($0["check"]?.string ?? "", $0) })
        #expect(check.code == 65, "\(check)")
        #expect(results["names"]?["outcome"] == "pass" && results["version"]?["outcome"] == "pass", "\(check.output)")
        for name in ["libraries", "symbols", "parameters"] {
            #expect(results[name]?["outcome"] == "skipped", "\(name): \(check.output)")
        }
        #expect(check.output.contains("is built for AArch64, but this machine is"), "\(check.output)")
        // A damaged seal is an error of the file, whatever machine the file is for.
        try change(file) { data in
            let magic = try #require(data.firstRange(of: Data("PLUGSEAL".utf8)))
            data[magic.lowerBound + 16] = 0xFF
        }
        let error = try run("inspect", file)
        #expect(error.code == 65 && error.errors.contains("its seal"), "\(error.errors)")
    }

    @Test(.disabled(if: isSanitized, "The module needs functions of the sanitizer, which the worker does not export."))
    func `seal makes the manifest of a module in Swift readable, with its types`() throws {
        let file = try folder.copy(built("libDesk.so"), as: "libDesk.so")
        chmod(file, 0o750)
        let before = try run("facade", file)
        let sealing = try run("seal", file)
        #expect(sealing.code == 0 && sealing.output.contains("is sealed"), "\(sealing.errors)")
        let report = try run("inspect", "--json", file)
        #expect(report.json?["sealed"] == true && report.json?["toolchain"]?.string == Toolchain.current)
        #expect(try run("facade", file).output == before.output)
        var status = stat()
        #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o750)

        let bytes = try Data(contentsOf: URL(filePath: file))
        try FileManager.default.createSymbolicLink(atPath: "\(folder.path)/link.so", withDestinationPath: "libDesk.so")
        let again = try run("seal", file, "\(folder.path)/link.so")
        #expect(again.code == 0 && !again.output.contains("is sealed"), "\(again.output)")
        #expect(try Data(contentsOf: URL(filePath: file)) == bytes)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 2)

        // The host opens the sealed file, and `strip` keeps the seal.
        _ = try TestHost([file])
        if let strip = Tool("strip") {
            try strip.run(["-s", file])
            #expect(try run("inspect", "--json", file).json?["sealed"] == true)
        }
    }

    @Test func `seal says what it cannot seal`() throws {
        #expect(try run("seal", "\(folder.path)/none.so").code == 66)
        let crashing = try run("seal", try folder.copy(CModule(entry: "abort();").build(), as: "crash.so"))
        #expect(crashing.code == 65 && crashing.errors.contains("cannot be sealed"), "\(crashing.errors)")
    }

    @Test(arguments: [false, true])
    func `a module whose code says something else than its seal is refused`(isIsolated: Bool) throws {
        let file = try folder.copy(CModule(name: "Honest").build(), as: "honest.so")
        #expect(try run("seal", file).code == 0)
        try change(file) { data in
            let seal = try #require(data.firstRange(of: Data("PLUGSEAL".utf8)))
            let name = try #require(data[seal.lowerBound...].firstRange(of: Data("Honest".utf8)))
            data.replaceSubrange(name, with: Data("Liar".utf8) + Data("99".utf8))
        }
        #expect(try run("inspect", "--json", file).json?["manifest"]?["name"] == "Liar99")
        let plugins = try folder.folder("plugins")
        try folder.copy(file, as: "plugins/a.so")
        let isolation = isIsolated ? ["--isolate", "all"] : []
        let list = try ProgramProcess(["list", "--json", "--plugins", plugins] + isolation).wait()
        let error = list.module("a.so")?["error"]
        #expect(error?["code"] == "sealMismatch", "\(list.output)")
        #expect(error?["message"]?.string?.contains("the seal names the module Liar99, the code Honest") == true)
        // The file can be sealed again.
        let again = try run("seal", file)
        #expect(again.code == 0 && again.output.contains("is sealed"), "\(again.errors)")
        #expect(try run("inspect", "--json", file).json?["manifest"]?["name"] == "Honest")
    }

    @Test func `seal keeps owner and group, sets no special bits, and refuses a file with several links`() throws {
        let file = try folder.copy(CModule(name: "Kept").build(), as: "kept.so")
        if geteuid() == 0 { #expect(chown(file, 0, 1235) == 0) }
        #expect(chmod(file, 0o4750) == 0)
        var (before, after) = (stat(), stat())
        #expect(stat(file, &before) == 0 && link(file, "\(folder.path)/other.so") == 0)
        let refused = try run("seal", file)
        #expect(refused.code == 77 && refused.errors.contains("has 2 hard links"), "\(refused.errors)")
        unlink("\(folder.path)/other.so")
        let sealing = try run("seal", file)
        #expect(sealing.code == 0 && sealing.output.contains("is sealed"), "\(sealing.errors)")
        #expect(stat(file, &after) == 0 && after.st_mode & 0o7777 == 0o750)
        #expect((after.st_uid, after.st_gid) == (before.st_uid, before.st_gid))
    }
}
