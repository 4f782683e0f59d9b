import Foundation

/// Compiles a module in C. Returns the bytes of the shared library.
func compile(_ source: String, _ flags: [String], root: String, in folder: Folder) throws -> [UInt8] {
    let (file, library) = ("\(folder.path)/module.c", "\(folder.path)/module.so")
    try source.write(toFile: file, atomically: true, encoding: .utf8)
    let compiler = Process()
    compiler.executableURL = URL(filePath: "/usr/bin/env")
    compiler.arguments =
        ["clang", "-std=gnu11", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-pthread"] + flags
        + ["-I", "\(root)/Sources/CPluginABI/include", "-o", library, file]
    try compiler.run()
    compiler.waitUntilExit()
    guard compiler.terminationStatus == 0 else { throw Usage(message: "A module does not compile.") }
    return try read(library)
}

extension [UInt8] {
    func first(of bytes: [UInt8]) -> Int? {
        guard let first = bytes.first, count >= bytes.count else { return nil }
        return (0...(count - bytes.count)).first {
            self[$0] == first && self[$0..<($0 + bytes.count)].elementsEqual(bytes)
        }
    }

    /// Replaces a text with another one of the same length, wherever it occurs.
    mutating func patch(_ text: String, with other: String) {
        let (old, new) = (Array(text.utf8), Array(other.utf8))
        precondition(old.count == new.count)
        var place = 0
        while place + old.count <= count {
            if self[place] == old[0], self[place..<(place + old.count)].elementsEqual(old) {
                replaceSubrange(place..<(place + old.count), with: new)
                place += old.count
            } else {
                place += 1
            }
        }
    }
}
