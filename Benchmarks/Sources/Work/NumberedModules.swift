import Foundation

/// Many modules of one build: copies of one file with other digits in the name and the version. Each has code, data,
/// relocations and a runtime registration of its own, like modules that were built one by one.
public enum NumberedModules {
    /// Writes modules with the numbers from 0 on. Each file appears in the folder when it is complete.
    public static func writeAll(_ count: Int, to folder: String) throws {
        for number in 0..<count { try write(number, to: folder) }
    }

    /// Writes one module.
    ///
    /// - Parameters:
    ///   - number: Less than 100 million. The name is `NumberedModule_` and its eight digits.
    ///   - version: Added to the first number of its version.
    public static func write(_ number: Int, version: Int = 0, to folder: String, named file: String? = nil) throws {
        var bytes = template
        for offset in offsets.names {
            bytes.replaceSubrange(offset..<offset + 8, with: String(100_000_000 + number).utf8.dropFirst())
        }
        for offset in offsets.versions {
            bytes.replaceSubrange(offset..<offset + 9, with: String(100_000_000 + version).utf8)
        }
        let path = "\(folder)/\(file ?? "lib\(name(number))").so"
        let partial = "\(path).partial"
        try bytes.write(to: URL(fileURLWithPath: partial))
        guard chmod(partial, 0o644) == 0, rename(partial, path) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    public static func name(_ number: Int) -> String {
        "NumberedModule_" + String(100_000_000 + number).dropFirst()
    }

    private static let template: Data = {
        let file = Opened.module("NumberedModule")
        guard let bytes = FileManager.default.contents(atPath: file) else { fatalError("There is no \(file).") }
        return bytes
    }()

    /// The offsets of the digits in the file.
    private static let offsets: (names: [Int], versions: [Int]) = {
        let names = find("NumberedModule_00000000").map { $0 + "NumberedModule_".utf8.count }
        let versions = find("100000000.0.0-numbered")
        guard !names.isEmpty, !versions.isEmpty else { fatalError("The module has no name to be replaced.") }
        return (names, versions)
    }()

    private static func find(_ text: String) -> [Int] {
        var (found, start) = ([Int](), template.startIndex)
        while let range = template.range(of: Data(text.utf8), in: start..<template.endIndex) {
            found.append(range.lowerBound)
            start = range.upperBound
        }
        return found
    }
}
