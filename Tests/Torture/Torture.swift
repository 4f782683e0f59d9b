import Foundation

/// Attacks the built program `pluginhost` from outside, from a seed that it prints, for any length of time.
///
/// Each attack makes rounds of hostile input, and then checks promises of the program: it does not die, or names at its
/// next start what killed it; it serves other modules and clients meanwhile; and it ends on request.
@main
enum Torture {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        do {
            exit(try attack() == 0 ? 0 : 1)
        } catch {
            FileHandle.standardError.write(Data("torture: \(error)\n".utf8))
            exit(error is Usage ? 64 : 70)
        }
    }

    /// Returns the number of findings.
    private static func attack() throws -> Int {
        let options = try Options(Array(CommandLine.arguments.dropFirst()))
        say("torture: seed \(options.seed): \(options.attacks.joined(separator: ", "))")
        let victims = try Victims(root: options.root)
        defer { victims.remove() }
        var findings = 0
        for name in options.attacks {
            let attack = try make(name, options, victims)
            let end = ContinuousClock.now + .seconds(options.seconds)
            let rounds = attack.rounds.map { options.isTenth ? $0 / 10 : $0 }
            var round = options.round ?? 0
            repeat {
                let folder = try Folder("\(name)-\(round)")
                var random = SplitMix(seed: options.seed, attack: name, round: round)
                do {
                    try attack.run(in: folder, &random)
                    folder.remove()
                } catch let finding as Finding {
                    findings += 1
                    say("FOUND by \(name), round \(round): \(finding.message)")
                    say("  kept: \(folder.path)")
                    say("  again: scripts/torture --seed \(options.seed) --round \(round) \(name)")
                    if findings >= 10 { break }
                }
                round += 1
            } while options.round == nil && rounds.map { round < $0 } ?? (ContinuousClock.now < end)
            say("\(name): \(round - (options.round ?? 0)) rounds, \(attack.summary)")
        }
        say(findings == 0 ? "torture: nothing found" : "torture: \(findings) found")
        return findings
    }

    private static func make(_ name: String, _ options: Options, _ victims: Victims) throws -> any Attack {
        let program = Program(path: options.program)
        switch name {
        case "binaries": return try BinaryAttack(program, victims, modules: options.modules)
        case "manifests": return ManifestAttack(program, victims)
        case "lines": return LineAttack(program, victims)
        case "folders": return FolderAttack(program, victims)
        case "hooks": return HookAttack(program, victims)
        case "crashes": return CrashAttack(program, victims, try TrafficModules(root: options.root))
        case "replacements": return ReplacementAttack(program, victims, try TrafficModules(root: options.root))
        case "kills": return KillAttack(program, victims)
        default: throw Usage(message: "There is no attack '\(name)'.")
        }
    }
}

/// One kind of hostile input.
protocol Attack: AnyObject {
    /// Figures about the rounds so far.
    var summary: String { get }
    /// The number of rounds; `nil` if rounds are made for some time.
    var rounds: Int? { get }

    /// Makes one round.
    ///
    /// - Throws: ``Finding`` when the program breaks a promise.
    func run(in folder: Folder, _ random: inout SplitMix) throws
}

extension Attack {
    var rounds: Int? { nil }
}

/// A promise that the program has broken.
struct Finding: Error {
    let message: String
}

struct Usage: Error, CustomStringConvertible {
    let message: String
    var description: String { "\(message) See scripts/torture --help." }
}

struct Options {
    static let all = ["binaries", "manifests", "lines", "folders", "hooks", "crashes", "replacements", "kills"]

    var seed = UInt64.random(in: 1...999_999_999)
    var seconds = 30
    /// Whether attacks with a fixed number of rounds make only a tenth of them.
    var isTenth = false
    /// The only round to make.
    var round: Int?
    var root = "."
    var program = ""
    /// The folder of the sample modules.
    var modules = ""
    var attacks: [String] = []

    init(_ words: [String]) throws {
        var rest = words[...]
        func value(_ name: String) throws -> String {
            guard let value = rest.popFirst() else { throw Usage(message: "\(name) needs a value.") }
            return value
        }
        func number(_ name: String) throws -> Int {
            guard let number = Int(try value(name)), number >= 0 else {
                throw Usage(message: "\(name) takes a whole number.")
            }
            return number
        }
        while let word = rest.popFirst() {
            switch word {
            case "--seed": seed = UInt64(try number(word))
            case "--seconds": seconds = try number(word)
            case "--tenth": isTenth = true
            case "--round": round = try number(word)
            case "--root": root = try value(word)
            case "--program": program = try value(word)
            case "--modules": modules = try value(word)
            case _ where Self.all.contains(word): attacks.append(word)
            default: throw Usage(message: "Unknown argument '\(word)'.")
            }
        }
        if attacks.isEmpty { attacks = Self.all }
    }
}

/// Writes a line immediately, whatever standard output is connected to.
private func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
