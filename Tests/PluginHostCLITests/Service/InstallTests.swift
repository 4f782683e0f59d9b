import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct InstallTests {
    private func install(_ arguments: String...) throws -> ProgramProcess.Outcome {
        try ProgramProcess(arguments, program: "\(repository)/scripts/install").wait()
    }

    @Test func `the program runs from a prefix, and leaves nothing behind when it is removed`() throws {
        let folder = try TemporaryFolder()
        let prefix = try folder.folder("prefix")
        let build = URL(filePath: built("pluginhost")).deletingLastPathComponent().path
        for _ in 0..<2 {
            let outcome = try install("--prefix", prefix, "--build", build)
            #expect(outcome.code == 0, "\(outcome.errors)")
        }
        let files = try #require(FileManager.default.subpaths(atPath: prefix))
        for file in [
            "bin/pluginhost", "bin/pluginhost-worker", "share/man/man1/pluginhost.1", "share/man/man1/pluginhost-run.1",
            "share/bash-completion/completions/pluginhost", "share/zsh/site-functions/_pluginhost",
            "share/fish/vendor_completions.d/pluginhost.fish", "include/plugin_abi.h", "include/plugin_abi/all.h",
            "lib/pkgconfig/pluginhost.pc", "lib/systemd/system/pluginhost.service",
            "share/pluginhost/package/Package.swift", "share/pluginhost/package/Sources/PluginABI/ABI.swift",
        ] { #expect(files.contains(file), "\(file)") }

        // The program finds the worker beside it. With a sanitizer, the worker does not export what the module needs.
        let plugins = try folder.folder("plugins")
        try folder.copy(built("libModuleC.so"), as: "plugins/libModuleC.so")
        let list = try ProgramProcess(
            ["list", "--json", "--isolate", "all", "--plugins", plugins], program: "\(prefix)/bin/pluginhost"
        ).wait()
        #expect(list.module("libModuleC.so")?["process"]?.int != nil || isSanitized, "\(list.errors)")
        try checkUnit("\(prefix)/lib/systemd/system/pluginhost.service")
        if let compiler = Tool("clang") {
            let source = try folder.file("m.c", "#include <plugin_abi.h>\n")
            try compiler.run(["-fsyntax-only", "-Wall", "-Werror", "-I\(prefix)/include", source])
        }

        try checkNewModules(prefix, folder)

        try folder.file("prefix/share/man/man1/other.1")
        #expect(try install("--prefix", prefix, "--uninstall").code == 0)
        #expect(FileManager.default.subpaths(atPath: prefix)?.last == "share/man/man1/other.1")
        #expect(FileManager.default.subpaths(atPath: prefix)?.count == 4)
        #expect(try install("--prefix", prefix, "--uninstall").code == 66)
        #expect(try install("--prefix", "here").code == 64)
    }

    @Test func `a later installation replaces whole files, and removes those that it no longer has`() throws {
        let folder = try TemporaryFolder()
        let prefix = try folder.folder("prefix")
        let build = URL(filePath: built("pluginhost")).deletingLastPathComponent().path
        #expect(try install("--prefix", prefix, "--build", build).code == 0)
        let list = "\(prefix)/share/pluginhost/installed-files"
        let before = try String(contentsOfFile: list, encoding: .utf8)
        try (before + "share/old/page\n").write(toFile: list, atomically: true, encoding: .utf8)
        try folder.file("prefix/share/old/page")
        func files() -> Set<String> { Set(FileManager.default.subpaths(atPath: prefix) ?? []) }
        let all = files()

        // The limit has the effect of a full disk: the programs cannot be written.
        let line = "ulimit -f 100; exec \"$0\" --prefix \"$1\" --build \"$2\""
        let script = "\(repository)/scripts/install"
        let limited = try ProgramProcess(["-c", line, script, prefix, build], program: "/bin/bash").wait()
        #expect(limited.code != 0 && files() == all, "\(limited.errors)")

        // The installed programs are installed over themselves.
        let again = try install("--prefix", prefix, "--build", "\(prefix)/bin")
        #expect(again.code == 0, "\(again.errors)")
        #expect(files() == all.subtracting(["share/old", "share/old/page"]))
        #expect(try String(contentsOfFile: list, encoding: .utf8) == before)
        #expect(try ProgramProcess(["--version"], program: "\(prefix)/bin/pluginhost").wait().code == 0)
    }

    /// Checks that modules which the installed program creates find what they depend on.
    private func checkNewModules(_ prefix: String, _ folder: TemporaryFolder) throws {
        for language in ["swift", "c", "c++", "rust"] {
            let outcome = try ProgramProcess(
                ["new", "Hello", "--language", language, "--at", "\(folder.path)/\(language)"],
                program: "\(prefix)/bin/pluginhost"
            ).wait()
            #expect(outcome.code == 0, "\(outcome.errors)")
        }
        let package = "\(prefix)/share/pluginhost/package"
        let manifest = try String(contentsOfFile: "\(folder.path)/swift/Package.swift", encoding: .utf8)
        #expect(manifest.contains("path: \"\(package)\""))
        #expect(
            FileManager.default.contentsEqual(
                atPath: "\(folder.path)/rust/src/abi.rs", andPath: "\(repository)/Examples/Rust/abi.rs"))
        // The package has all folders that it declares, and no others.
        let declared = try String(contentsOfFile: "\(package)/Package.swift", encoding: .utf8)
        try SwiftSource.checkSyntax(declared)
        let targets = declared.matches(of: /target\(\s*name: "(\w+)"/).map { String($0.1) }
        #expect(Set(targets) == Set(try FileManager.default.contentsOfDirectory(atPath: "\(package)/Sources")))
        #expect(declared.contains(".library(name: \"PluginTestKit\"") && !declared.contains("path: \""))
        guard Tool("pkg-config") != nil, let make = Tool("make") else { return }
        try make.run(["-C", "\(folder.path)/c", "CC=clang", "CFLAGS=-Wall -Wextra -Werror"])
        #expect(FileManager.default.fileExists(atPath: "\(folder.path)/c/build/libHello.so"))
    }

    /// Checks that the unit is valid, and allows the processes of isolated modules.
    private func checkUnit(_ unit: String) throws {
        let text = try String(contentsOfFile: unit, encoding: .utf8)
        for setting in ["Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "WatchdogSec=", "ProtectSystem=strict"] {
            #expect(text.contains("\n" + setting), "\(setting)")
        }
        for setting in ["RestrictNamespaces", "SystemCallFilter", "MemoryDenyWriteExecute", "PrivateUsers"] {
            #expect(!text.contains(setting), "\(setting)")
        }
        guard let analyze = Tool("systemd-analyze") else { return }
        let findings = try analyze.run(["verify", "--man=no", unit])
        #expect(!findings.contains("pluginhost"), "\(findings)")
    }
}
