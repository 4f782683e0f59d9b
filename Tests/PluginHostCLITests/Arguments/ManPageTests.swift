import Foundation
import Glibc
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct ManPageTests {
    @Test func `every command has a page with all its options, which groff accepts`() throws {
        let folder = try TemporaryFolder()
        #expect(try ProgramProcess.run("man", "--into", folder.path).code == 0)
        let pages = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(Set(pages) == Set(["pluginhost.1"] + Program.specifications.map { "pluginhost-\($0.name).1" }))
        for command in Program.specifications {
            let page = try String(contentsOfFile: "\(folder.path)/pluginhost-\(command.name).1", encoding: .utf8)
            #expect(page.hasPrefix(".TH PLUGINHOST\\-\(command.name.uppercased()) 1 "))
            for option in command.allOptions {
                #expect(page.contains("\\fB\(option.name.replacing("-", with: "\\-"))\\fR"), "\(command.name)")
            }
        }
        guard let groff = Tool("groff") else { return }
        let files = pages.sorted().map { "\(folder.path)/\($0)" }
        let text = try groff.run(["-man", "-Tutf8", "-ww", "-P-cbou"] + files)
        #expect(text.contains("OPTIONS") && text.contains("EXIT STATUS") && !text.contains(": warning"))
        #expect(text.contains("--plugins dir"))
    }

    @Test func `a page is printed as it is written`() throws {
        let page = try ProgramProcess.run("man", "list")
        #expect(page.output == ManPage.page(of: List.specification) + "\n")
        #expect(try ProgramProcess.run("man").output.hasPrefix(".TH PLUGINHOST 1 "))
        #expect(try ProgramProcess.run("man", "lst").errors.contains("“list”"))
        #expect(try ProgramProcess.run("man", "--into", "/none/here").code == 73)
    }
}
