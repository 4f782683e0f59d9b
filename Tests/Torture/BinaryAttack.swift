import Foundation

/// Shared libraries that were changed after they were built, except for their machine code. Changed code could
/// overwrite any memory of the host, which might then crash much later, without any sign of the module at fault.
///
/// A library that passes the host's checks is code, and may kill the host; then the next start names the file and
/// continues without it. The host therefore dies at most once for each file. A module that has started in an orderly
/// way may still crash when it ends: then the command has given its answer, and the crash report names the file.
final class BinaryAttack: Attack {
    private let program: Program
    private let bases: [Base]
    private var files = 0
    private var deaths = 0

    init(_ program: Program, _ victims: Victims, modules: String) throws {
        self.program = program
        bases = [
            Base(try read("\(modules)/libModuleA.so")), Base(try read("\(modules)/libModuleC.so")),
            Base(victims.module(1)),
        ]
    }

    var summary: String { "\(files) files, \(deaths) of which have killed a host once" }

    func run(in folder: Folder, _ random: inout SplitMix) throws {
        let plugins = try folder.folder("plugins")
        let count = 6
        for number in 0..<count {
            try put(mutant(of: random.pick(bases), &random), at: "\(plugins)/m\(number).so")
        }
        files += count
        var blamed = 0
        while true {
            let outcome = try program.run(["list", "--json", "--plugins", plugins], in: folder, seconds: 60)
            let isAnswered = states(outcome.output).count == count && !outcome.isLate
            if isAnswered, outcome.signal == 0 || hasCrashedAtTheEnd(outcome) { break }
            if outcome.signal == 0, !outcome.isLate, !outcome.output.isEmpty || !outcome.errors.isEmpty {
                throw Finding(message: "'list' \(outcome.description), and does not list \(count) files")
            }
            deaths += 1
            blamed += 1
            if blamed > count {
                throw Finding(message: "'list' \(outcome.description) again, after each file could have been blamed")
            }
        }
    }

    private func hasCrashedAtTheEnd(_ outcome: Program.Outcome) -> Bool {
        let hooks = ["willStop", "tearDown", "deactivate"]
        return hooks.contains { outcome.errors.contains("while running the \($0) of ") }
    }

    private func mutant(of base: Base, _ random: inout SplitMix) -> [UInt8] {
        var bytes = base.bytes
        // The parts of the file that contain tables: the headers, and everything before the code.
        let near = random.oneIn(3) ? bytes.count : random.pick([64, 64 + 56 * 12, 4096, 16384])
        for _ in 0..<(1 + random.below(4)) {
            let offset = random.below(min(near, bytes.count))
            switch random.below(8) {
            case 0...2:
                let (bit, byte) = (UInt8(random.below(8)), UInt8(random.below(256)))
                guard !base.isCode(offset..<(offset + 1)) else { continue }
                bytes[offset] = random.oneIn(3) ? byte : bytes[offset] ^ 1 << bit
            case 3: bytes.removeLast(random.below(bytes.count / 2))
            case 4: bytes += [UInt8](repeating: UInt8(random.below(256)), count: random.below(1 << 16))
            case 5:
                let size = min(random.below(512), bytes.count - offset)
                let from = random.below(bytes.count - size)
                guard !base.isCode(offset..<(offset + size)) else { continue }
                bytes.replaceSubrange(offset..<(offset + size), with: Array(bytes[from..<(from + size)]))
            default:
                let words: [UInt64] = [
                    0, 1, UInt64(bytes.count), .max, 1 << 31, 1 << 32, 1 << 63, UInt64(bytes.count) - 1, 0x1000,
                    UInt64(random.below(bytes.count)),
                ]
                let word = random.pick(words)
                let aligned = offset & ~7
                guard aligned + 8 <= bytes.count, !base.isCode(aligned..<(aligned + 8)) else { continue }
                withUnsafeBytes(of: word.littleEndian) { bytes.replaceSubrange(aligned..<(aligned + 8), with: $0) }
            }
        }
        return bytes
    }
}

/// A library to change.
private struct Base {
    let bytes: [UInt8]
    /// The ranges of its machine code.
    private var code: [Range<Int>] = []

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        // The section headers: their offset, their size and their number are in the file header.
        let (table, size, count) = (word(0x28, 8), word(0x3A, 2), word(0x3C, 2))
        for header in (0..<count).map({ table + $0 * size }) where word(header + 8, 8) & 4 != 0 {  // SHF_EXECINSTR
            let offset = word(header + 24, 8)
            code.append(offset..<(offset + word(header + 32, 8)))
        }
        precondition(!code.isEmpty, "The library has no section with machine code.")
    }

    /// Whether some of these bytes are machine code.
    func isCode(_ range: Range<Int>) -> Bool { code.contains { $0.overlaps(range) } }

    private func word(_ offset: Int, _ size: Int) -> Int {
        bytes[offset..<(offset + size)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
