import CFuzzer
import Foundation

/// `Fuzz TARGET [ARGUMENT …]` passes inputs of libFuzzer to one reader of text or bytes from outside, with arguments
/// for libFuzzer; `Fuzz TARGET --seeds FOLDER` writes the initial inputs.
@main enum Fuzz {
    static func main() {
        guard CommandLine.arguments.count > 1, let target = FuzzTarget(rawValue: CommandLine.arguments[1]) else {
            let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
            FileHandle.standardError.write(Data("Fuzz needs the name of a target: \(names).\n".utf8))
            exit(64)
        }
        if CommandLine.arguments.count == 4, CommandLine.arguments[2] == "--seeds" {
            for (number, seed) in target.seeds.enumerated() {
                try! Data(seed).write(to: URL(filePath: "\(CommandLine.arguments[3])/seed-\(number)"))
            }
            return
        }
        // libFuzzer keeps the arguments until the process ends.
        let words = [CommandLine.arguments[0]] + CommandLine.arguments.dropFirst(2)
        let pointers = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: words.count + 1)
        for (index, word) in words.enumerated() { pointers[index] = strdup(word) }
        pointers[words.count] = nil
        var (count, arguments): (CInt, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) = (
            CInt(words.count), pointers
        )
        chosen = target
        exit(LLVMFuzzerRunDriver(&count, &arguments, testOneInput))
    }

    /// Set once, before the first input, on the only thread.
    nonisolated(unsafe) static var chosen = FuzzTarget.json
}

/// The function that libFuzzer calls with each input. The `main` of libFuzzer, linked but not used, needs this name.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    Fuzz.chosen.test(UnsafeRawBufferPointer(start: data, count: size))
    return 0
}
