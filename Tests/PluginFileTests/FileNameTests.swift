import FoundationEssentials
import Glibc
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct FileNameTests {
    @Test(
        arguments: [
            ("/a/b.so", "b.so", "/a"), ("/a", "a", "/"), ("a", "a", ""), ("a/b", "b", "a"), ("a/b/", "b", "a"),
            ("a//b//", "b", "a"), ("//a", "a", "/"), ("/", "/", "/"), ("///", "/", "/"), ("", "", ""),
            ("/é/e\u{301}", "e\u{301}", "/é"), ("/a/\u{301}b", "\u{301}b", "/a"), ("./..", "..", "."),
        ])
    func `A path has a file name and a folder`(path: String, name: String, folder: String) {
        #expect(path.fileName.utf8.elementsEqual(name.utf8))
        #expect(path.parentFolder.utf8.elementsEqual(folder.utf8))
    }

    @Test(arguments: [("", ""), (" \r\n\t", ""), (" a b\n", "a b"), ("a", "a"), ("\u{A0}a\u{A0}", "\u{A0}a\u{A0}")])
    func `Blanks at both ends are removed`(text: String, trimmed: String) {
        #expect(text.trimmed == trimmed)
    }

    @Test func `An error of a file operation says what the system said`() throws {
        let folder = try TemporaryFolder()
        let files = FileManager.default
        func text(_ body: () throws -> Void) -> String {
            do { try body() } catch { return CocoaError.text(error) }
            return "no error"
        }
        #expect(text { _ = try Data(contentsOf: URL(filePath: folder.path + "/none")) } == "No such file or directory")
        #expect(
            text { try files.copyItem(atPath: folder.path + "/none", toPath: folder.path + "/x") }
                == "No such file or directory")
        #expect(
            text { try Data().write(to: URL(filePath: folder.path), options: .withoutOverwriting) } == "File exists")
        #expect(text { _ = try files.contentsOfDirectory(atPath: "/dev/null") } == "Not a directory")
        #expect(text { throw POSIXError(.EACCES) } == "Permission denied")
        #expect(text { throw CocoaError(.fileReadUnknown) }.contains("CocoaError"))
    }
}
