import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// No module links against another module or the host, as the binaries show.
@Suite struct IndependenceTests {
    private let modules = ["ModuleA", "ModuleB", "ModuleC"]

    private func image(_ path: String) throws -> ELFImage {
        try Data(contentsOf: URL(fileURLWithPath: path)).withUnsafeBytes { try ELFImage(reading: $0, path: path) }
    }

    /// Whether the bytes of a file, including its symbol names, contain a word.
    private func contains(_ path: String, _ word: String) throws -> Bool {
        try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped).range(of: Data(word.utf8)) != nil
    }

    @Test func `A module needs no other module and no host, and exports its entry function`() throws {
        for name in modules {
            let image = try image(built("lib\(name).so"))
            #expect(image.exportsEntry)
            #expect(!image.needed.contains { $0.contains("Module") || $0.contains("PluginHost") }, "\(image.needed)")
        }
    }

    @Test func `No symbol of a module names another module or the host`() throws {
        for name in modules {
            let path = built("lib\(name).so")
            for other in modules where other != name {
                #expect(try !contains(path, "\(other.utf8.count)\(other)"), "\(name) names \(other)")
            }
            #expect(try !contains(path, "10PluginHost"), "\(name) names the host")
            #expect(try !contains(path, "plugin_host_record_at"), "\(name) has the host's code")
        }
    }

    @Test func `The program needs no module, and names none`() throws {
        let path = built("pluginhost")
        for name in modules {
            #expect(try !contains(path, "lib\(name).so"), "the program names lib\(name).so")
            #expect(try !contains(path, "\(name.utf8.count)\(name)"), "the program names \(name)")
        }
    }

    /// Foundation and ICU take several times as long to load as everything else together.
    @Test(arguments: ["pluginhost", "LinkedProgram", "libModuleA.so", "libFixtureModule.so"])
    func `Programs and modules do not need Foundation, which is slow to load`(name: String) throws {
        let path = built(name)
        #expect(try contains(path, "libswiftCore.so"))
        for library in ["libFoundation.so", "libFoundationInternationalization.so", "lib_FoundationICU.so"] {
            #expect(
                try !contains(path, library),
                """
                \(name) needs \(library). A file in Sources imports Foundation (scripts/layers names it), or an object \
                file of an earlier build did: "touch" all files in Sources and build again.
                """)
        }
    }

    @Test(.disabled(if: isSanitized, "Sanitizers need more libraries."))
    func `The worker needs neither a Swift library nor one of C++`() throws {
        for library in ["libswift", "libstdc++.so", "libm.so"] {
            #expect(try !contains(built("pluginhost-worker"), library), "\(library)")
        }
    }

    @Test func `A module in C needs no Swift library`() throws {
        let path = try CFixture.build(CFixture.entry)
        #expect(try image(path).needed.allSatisfy { !$0.contains("swift") })
    }
}
