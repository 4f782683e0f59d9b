import PluginABI
import PluginFile

/// Why modules wait: what they require is missing, has another version, waits itself, or requires them in turn.
struct UnmetRequirements {
    private let manifests: [ModuleManifest]
    private let starting: Set<Int>
    private var present: Provisions
    private var all = Provisions()

    /// - Parameters:
    ///   - chosen: All modules that would serve.
    ///   - starting: The places of those that can.
    ///   - present: What is there besides.
    init(chosen: [ModuleManifest], starting: Set<Int>, present: Provisions) {
        (manifests, self.starting, self.present) = (chosen, starting, present)
        for (place, manifest) in chosen.enumerated() {
            all.add(manifest)
            if starting.contains(place) { self.present.add(manifest) }
        }
    }

    func reason(of place: Int) -> PluginError {
        let name = manifests[place].name
        let reasons = manifests[place].requirements.filter { !$0.isOptional && !present.satisfies($0) }
        // What is worst first: a circle and a wrong version do not pass by waiting.
        if let circle = circle(from: place) {
            return PluginError(
                .circularRequirement,
                "\(name) waits in a circle: \(circle.joined(separator: " requires ")). Make one of these requirements "
                    + "optional.")
        }
        for requirement in reasons {
            let found = present.versions(for: requirement)
            guard !found.isEmpty else { continue }
            let versions = found.map(\.description).joined(separator: ", ")
            return PluginError(
                .wrongVersion, "\(name) waits: it requires \(requirement), and \(versions) is there.")
        }
        for requirement in reasons where all.versions(for: requirement).isEmpty {
            return PluginError(
                .missingRequirement,
                "\(name) waits: it requires \(requirement), which is not there. It starts when that comes.")
        }
        guard let requirement = reasons.first else {
            return PluginError(.conflict, "\(name) cannot be served.")
        }
        let versions = all.versions(for: requirement).filter(requirement.versions.contains)
        guard !versions.isEmpty else {
            let others = all.versions(for: requirement).map(\.description).joined(separator: ", ")
            return PluginError(
                .wrongVersion, "\(name) waits: it requires \(requirement), and \(others) is there, and waits itself.")
        }
        return PluginError(
            .requirementWaits, "\(name) waits: it requires \(requirement), which is there, and waits itself.")
    }

    /// The names on the way from a module back to itself, if what it requires leads there.
    private func circle(from start: Int) -> [String]? {
        var visited: Set<Int> = []
        var paths: [(place: Int, names: [String])] = [(start, [manifests[start].name])]
        while !paths.isEmpty {
            let (place, names) = paths.removeFirst()
            for requirement in manifests[place].requirements where !requirement.isOptional {
                for next in manifests.indices
                where !starting.contains(next) && manifests[next].provides(requirement) {
                    if next == start { return names + [manifests[start].name] }
                    if visited.insert(next).inserted { paths.append((next, names + [manifests[next].name])) }
                }
            }
        }
        return nil
    }
}
