import Foundation

/// Changed manifests, route files and service files. The code of the modules is correct, so nothing may die.
final class ManifestAttack: Attack {
    private let program: Program
    private let victims: Victims
    private var texts = 0
    private var accepted = 0

    init(_ program: Program, _ victims: Victims) { (self.program, self.victims) = (program, victims) }

    var summary: String { "\(texts) texts, \(accepted) modules accepted" }

    private static let routes =
        #"{"app://a/:id/x{/:n}?":{"action":"V/act","name":"a","summary":"s","defaults":{"n":1}}}"#
    private static let services = #"{"T":{"target":"V","version":"1.0.0","priority":2}}"#
    private static let list =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><plist version=\"1.0\"><dict><key>app://p/*</key>"
        + "<dict><key>action</key><string>V/act</string><key>defaults</key><dict><key>n</key><integer>3</integer></dict>"
        + "</dict></dict></plist>"

    func run(in folder: Folder, _ random: inout SplitMix) throws {
        let plugins = try folder.folder("plugins")
        let count = 12
        let manifest = Array(Victims.manifest.utf8)
        for number in 0..<count {
            // Only one module can have the name, so most get their own.
            var text = number == 0 ? manifest : TextMutation.mutate(manifest, &random)
            if number > 0, !random.oneIn(4), let start = text.first(of: Array("Mine".utf8)) {
                text.replaceSubrange(start..<(start + 4), with: Array("Mine\(number)".utf8))
            }
            try put(victims.module(manifest: text), at: "\(plugins)/m\(number).so")
        }
        try put(TextMutation.mutate(Array(Self.routes.utf8), &random), at: "\(plugins)/a.routes.json")
        try put(TextMutation.mutate(Array(Self.services.utf8), &random), at: "\(plugins)/a.services.json")
        try put(TextMutation.mutate(Array(Self.list.utf8), &random), at: "\(plugins)/a.routes.plist")
        texts += count + 3
        for command in ["list", "routes", "services"] {
            let outcome = try program.run([command, "--json", "--plugins", plugins], in: folder, seconds: 60)
            guard outcome.signal == 0, !outcome.isLate else {
                throw Finding(message: "'\(command)' \(outcome.description)")
            }
            guard command == "list" else { continue }
            let states = states(outcome.output)
            // Another module may hold its name or its target, because of a version, a level or a priority.
            guard ["active", "superseded", "failed: conflict"].contains(states["m0.so"]),
                states.values.contains("active")
            else {
                throw Finding(message: "the module with the unchanged manifest does not serve: \(states)")
            }
            accepted += states.values.count { $0 == "active" }
            guard states.count >= count else {
                throw Finding(message: "'list' \(outcome.description) and shows \(states.count) of \(count) files")
            }
        }
    }
}
