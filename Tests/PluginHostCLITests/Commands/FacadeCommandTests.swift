import Foundation
import PluginABI
import PluginFacades
import PluginHost
import Testing

@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct FacadeCommandTests {
    private func program(with modules: String...) throws -> HostProgram {
        let program = try HostProgram()
        for module in modules {
            try program.folder.copy(built("lib\(module).so"), as: "plugins/lib\(module).so")
        }
        return program
    }

    @Test func `a façade is printed for a file, and for a module by its name`() throws {
        let program = try program(with: "ModuleA", "ModuleB")
        let byFile = try program.run("facade", "\(program.plugins)/libModuleA.so")
        let byName = try program.run("facade", "ModuleA")
        let report = try PluginHost.inspect(file: built("libModuleA.so"), trustsEveryone: true).derivingTypes()
        let expected = try Facade(manifest: #require(report.json["manifest"]).json).text
        #expect(byFile.code == 0 && byFile.output == expected && byFile.errors.isEmpty)
        #expect(byName.code == 0 && byName.output == expected)
    }

    @Test func `the name and the access level of a façade can be chosen`() throws {
        let program = try program(with: "ModuleB")
        let output = try program.run("facade", "ModuleB", "--name", "Calls", "--public").output
        #expect(output.contains("\npublic enum Calls {") && output.contains("        public func greet("))
        #expect(try program.run("facade", "ModuleB", "--name", "no name").code == 65)
    }

    @Test func `an unknown module, a missing file and a file that is not a module have different exit codes`() throws {
        let program = try program(with: "ModuleA")
        let unknown = try program.run("facade", "ModulA")
        #expect(unknown.code == 69 && unknown.errors.contains("Did you mean “ModuleA”?"))
        #expect(try program.run("facade", "./none.so").code == 66)
        try program.folder.file("text.so", Data("text".utf8))
        #expect(try program.run("facade", "\(program.folder.path)/text.so").code == 65)
    }
}
