import Foundation

/// A host of isolated modules, some of which misbehave, is killed at a random moment. A second later, none of its
/// workers is left.
final class KillAttack: Attack {
    private let program: Program
    private let victims: Victims
    private var ended = 0

    init(_ program: Program, _ victims: Victims) { (self.program, self.victims) = (program, victims) }

    let rounds: Int? = 200

    var summary: String { "\(ended) processes ended with their hosts" }

    func run(in folder: Folder, _ random: inout SplitMix) throws {
        let plugins = try folder.folder("plugins")
        let socket = "\(folder.path)/s"
        func change(_ number: Int, _ random: inout SplitMix) throws {
            let deed = random.oneIn(3) ? random.pick(["hang", "spin", "threads", "segv", "exit"]) : ""
            try put(
                victims.module(number, version: random.below(800), place: random.pick(Victims.places), deed: deed),
                at: "\(plugins)/\(number).so")
        }
        for number in 1...3 { try change(number, &random) }
        let host = try program.start(
            ["run", "--plugins", plugins, "--socket", socket, "--isolate", "all"], in: folder)
        let end = ContinuousClock.now + .milliseconds(random.below(1000))
        var clients: [Client] = []
        while ContinuousClock.now < end {
            usleep(UInt32(random.below(50_000)))
            if random.oneIn(3) { try change(1 + random.below(3), &random) }
            let target = "Victim0\(1 + random.below(3))"
            let call = #"{"jsonrpc":"2.0","id":1,"method":"call","params":{"target":"\#(target)","action":"act"}}"#
            guard clients.count < 20, let client = Client(socket) else { continue }
            client.send(Array((call + "\n").utf8), seconds: 0.1)
            clients.append(client)
        }
        let workers = processes(of: folder).filter { $0 != host.process }
        for process in workers where random.oneIn(4) { kill(process, SIGSTOP) }
        kill(host.process, SIGKILL)
        guard eventually(within: 10, { !host.isRunning }) else {
            throw Finding(message: "SIGKILL does not end the host")
        }
        ended += workers.count
        try requireEnd(of: folder)
    }
}
