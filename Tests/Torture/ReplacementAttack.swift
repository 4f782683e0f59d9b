import Foundation

/// A busy isolated module that is replaced again and again. Each call is executed once, and none fails.
final class ReplacementAttack: Attack {
    private static let replacements = 20
    private static let calls = 100_000
    private let program: Program
    private let victims: Victims
    private let modules: TrafficModules
    private var replacements = 0
    private var calls = 0

    init(_ program: Program, _ victims: Victims, _ modules: TrafficModules) {
        (self.program, self.victims, self.modules) = (program, victims, modules)
    }

    let rounds: Int? = 10

    var summary: String { "\(calls) calls during \(replacements) replacements" }

    func run(in folder: Folder, _ random: inout SplitMix) throws {
        let first = 100 + random.below(800)
        let traffic = try Traffic(program, victims, modules, in: folder, version: first, crashes: false)
        let pause = random.below(50_000)
        for replacement in 1...Self.replacements {
            let share = Self.calls * replacement / Self.replacements
            try traffic.wait("calls do not end") { traffic.calls >= share }
            usleep(UInt32(random.below(pause)))
            try traffic.replace(by: first + replacement)
            try traffic.waitForService(of: first + replacement)
            replacements += 1
        }
        try traffic.waitForCallers()
        try traffic.calm()
        calls += traffic.calls
        try traffic.end()
    }
}
