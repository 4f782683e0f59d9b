import Foundation

/// One module that misbehaves somewhere, beside a good one. After a few starts at most, the good module serves, and two
/// SIGTERMs end the host at once, whatever hangs.
final class HookAttack: Attack {
    private let program: Program
    private let victims: Victims
    private var starts = 0
    private var deaths = 0

    init(_ program: Program, _ victims: Victims) { (self.program, self.victims) = (program, victims) }

    var summary: String { "\(starts) starts, \(deaths) of which died of the module" }

    func run(in folder: Folder, _ random: inout SplitMix) throws {
        let plugins = try folder.folder("plugins")
        let (place, deed) = (random.pick(Victims.places), random.pick(Victims.deeds))
        let who = "\(deed) in \(place)"
        try put(victims.module(1), at: "\(plugins)/good.so")
        try put(victims.module(2, place: place, deed: deed), at: "\(plugins)/bad.so")
        let socket = "\(folder.path)/s"
        let call = #"{"target":"Victim01","action":"act","parameters":{}}"#
        var isServed = false
        for start in 1...4 where !isServed {
            starts += 1
            let host = try program.start(["run", "--plugins", plugins, "--socket", socket], in: folder)
            isServed =
                eventually(within: 15) {
                    !host.isRunning || Client.ask(socket, "call", call, seconds: 2)?.contains("42") == true
                } && host.isRunning
            if isServed, host.isRunning {
                for (method, parameters) in [
                    ("call", #"{"target":"Victim02","action":"act","parameters":{},"timeout":1}"#),
                    ("post", #"{"event":"torture"}"#),
                ] { _ = Client.ask(socket, method, parameters, seconds: 2) }
                let isThreatened = place == "act" || place == "event"
                if host.isRunning, !isThreatened, Client.ask(socket, "call", call, seconds: 10) == nil {
                    throw Finding(message: "\(who): the good module no longer serves")
                }
            }
            if !host.isRunning { deaths += 1 }
            try end(host, who, isOrderly: isServed, start)
        }
        guard isServed else { throw Finding(message: "\(who): after four starts, the good module does not serve") }
    }

    private func end(_ host: Program.Running, _ who: String, isOrderly: Bool, _ start: Int) throws {
        guard host.isRunning else {
            _ = host.wait(seconds: 1)
            return
        }
        host.signal(SIGTERM)
        // An orderly end gives each module time; a host that is hanging in the middle of a start gives none.
        if eventually(within: isOrderly ? 8 : 1, { !host.isRunning }) { return }
        host.signal(SIGTERM)
        guard eventually(within: 5, { !host.isRunning }) else {
            throw Finding(message: "\(who), start \(start): two SIGTERMs do not end the host")
        }
    }
}
