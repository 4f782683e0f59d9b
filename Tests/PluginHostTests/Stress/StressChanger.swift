import Foundation
import PluginABI
import PluginHost
import Synchronization

@testable import TestSupport

/// Changes the folder without pause, and updates the model before and after.
final class StressChanger: @unchecked Sendable {  // Used by one thread.
    private let round: StressRound
    private var random: SplitMix
    private var lastNumber = StressModule.numbers.lowerBound
    /// The versions that serve; 0 for none.
    private var present = [Int](repeating: 0, count: StressRound.places)

    init(_ round: StressRound) {
        self.round = round
        random = SplitMix(seed: round.seed)
    }

    /// Adds all modules before the callers begin.
    func begin() throws {
        for place in 0..<StressRound.places { try replace(place) }
    }

    func run() {
        let progress = round.progress[0]
        while !round.isOver {
            do { try change() } catch { round.report("the changer: \(error)") }
            progress.calls.add(1, ordering: .relaxed)
            round.changes.add(1, ordering: .relaxed)
        }
        progress.isOver.store(true, ordering: .relaxed)
    }

    private func change() throws {
        let place = Int(random.next() % UInt64(StressRound.places))
        let isCounter = place == StressRound.counter
        let kind = random.next() % 16
        round.progress[0].doing.withLock { $0 = "change \(kind) of \(StressModule.name(place))" }
        switch kind {
        case 0, 1: if present[place] != 0, !isCounter { try remove(place) } else { try replace(place) }
        case 2: try breakFile(place)
        case 3: try failToStart(place)
        case 4: try addSecond(place)
        case 5: try touch(place)
        default: try replace(place)
        }
    }

    private func file(_ place: Int) -> String { "\(StressModule.name(place)).so" }
    private func path(_ place: Int) -> String { "\(round.plugins)/\(file(place))" }

    private func next(_ place: Int) -> StressModule {
        lastNumber += 1
        return StressModule(
            place: place, number: lastNumber, isOdd: random.next() % 2 == 0, keepsCount: place == StressRound.counter)
    }

    /// Upgrades or downgrades a module, by a rename or by writing in place.
    private func replace(_ place: Int) throws {
        let module = next(place)
        round.model.allow(module.number, of: place)
        if random.next() % 4 == 0 {
            try StressModule.write(module.bytes(), to: path(place))
        } else {
            try module.put(into: round.plugins, as: file(place))
        }
        try waitForVersion(module.number, place)
    }

    private func remove(_ place: Int) throws {
        round.model.allow(0, of: place)
        guard unlink(path(place)) == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        try waitForVersion(0, place)
    }

    /// Replaces a file with nonsense: its module continues to serve, and a newer version follows.
    private func breakFile(_ place: Int) throws {
        try StressModule.put(Data("nonsense \(random.next())".utf8), into: round.plugins, as: file(place))
        if random.next() % 2 == 0 { usleep(2000) }
        try replace(place)
    }

    /// Adds a version that does not start, or refuses the state: the previous version continues to serve.
    private func failToStart(_ place: Int) throws {
        var module = next(place)
        if place == StressRound.counter, random.next() % 2 == 0 {
            module.refusesState = true
        } else {
            module.failsToStart = true
        }
        try module.put(into: round.plugins, as: file(place))
        if random.next() % 2 == 0 { usleep(20_000) }
        try replace(place)
    }

    /// Adds a second file with a higher version, and removes it again.
    private func addSecond(_ place: Int) throws {
        guard present[place] != 0 else { return try replace(place) }
        let before = present[place]
        let module = next(place)
        let second = "\(StressModule.name(place))-second.so"
        round.model.allow(module.number, of: place)
        try module.put(into: round.plugins, as: second)
        try waitForVersion(module.number, place)
        round.model.allow(before, of: place)
        unlink("\(round.plugins)/\(second)")
        try waitForVersion(before, place)
    }

    /// Updates the time of the present file, which must change nothing.
    private func touch(_ place: Int) throws { utimes(path(place), nil) }

    /// Waits until only this version answers.
    private func waitForVersion(_ number: Int, _ place: Int) throws {
        let name = StressModule.name(place)
        let deadline = ContinuousClock.now + .seconds(600)
        while true {
            let answer = (try? round.host.perform(name, "answer", [0]))?.string
            let isThere = number == 0 ? answer == nil : answer == StressModule.answer(place, number, 0)
            if isThere { break }
            guard ContinuousClock.now < deadline else {
                throw PluginError(
                    "never", "\(name) \(number) never came; \(answer ?? "nothing") answers: \(round.host.modules)")
            }
            usleep(200)
        }
        present[place] = number
        round.model.allowOnly(number, of: place)
    }
}
