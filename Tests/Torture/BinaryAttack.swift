import Foundation

/// Shared libraries that were changed after they were built.
///
/// What passes the host's checks is code and may kill the host; then the next start names the file and goes on without
/// it. So there are at most as many deaths as files. What was started in order may still crash when it is ended: then
/// the command has given its answer, and the crash report names the file.
final class BinaryAttack: Attack {
    private let program: Program
    private let bases: [[UInt8]]
    private var files = 0
    private var deaths = 0

    init(_ program: Program, _ victims: Victims, modules: String) throws {
        self.program = program
        bases = [
            try read("\(modules)/libModuleA.so"), try read("\(modules)/libModuleC.so"), victims.module(1),
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

    private func mutant(of base: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        var bytes = base
        // Where the tables are: the headers, and what lies before the code.
        let near = random.oneIn(3) ? bytes.count : random.pick([64, 64 + 56 * 12, 4096, 16384])
        for _ in 0..<(1 + random.below(4)) {
            let place = random.below(min(near, bytes.count))
            switch random.below(8) {
            case 0, 1: bytes[place] ^= 1 << UInt8(random.below(8))
            case 2: bytes[place] = UInt8(random.below(256))
            case 3: bytes.removeLast(random.below(bytes.count / 2))
            case 4: bytes += [UInt8](repeating: UInt8(random.below(256)), count: random.below(1 << 16))
            case 5:
                let size = min(random.below(512), bytes.count - place)
                let from = random.below(bytes.count - size)
                bytes.replaceSubrange(place..<(place + size), with: Array(bytes[from..<(from + size)]))
            default:
                let words: [UInt64] = [
                    0, 1, UInt64(bytes.count), .max, 1 << 31, 1 << 32, 1 << 63, UInt64(bytes.count) - 1, 0x1000,
                    UInt64(random.below(bytes.count)),
                ]
                let word = random.pick(words)
                let aligned = place & ~7
                guard aligned + 8 <= bytes.count else { continue }
                withUnsafeBytes(of: word.littleEndian) { bytes.replaceSubrange(aligned..<(aligned + 8), with: $0) }
            }
        }
        return bytes
    }
}
