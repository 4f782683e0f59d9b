import PluginABI
import PluginFile

/// The reasons why modules wait: a requirement is missing, has another version, itself waits or is starting, or
/// is circular.
struct UnmetRequirements {
    private let outlines: [ModuleOutline]
    private let starting: Set<Int>
    private let hooked: Set<Int>
    private var present: Provisions
    private var all: Provisions

    /// - Parameters:
    ///   - chosen: The outlines of all chosen modules.
    ///   - starting: The indices of those that can start.
    ///   - present: What other modules provide.
    ///   - hooked: The indices of those with a hook that has not returned yet.
    init(chosen: [ModuleOutline], starting: Set<Int>, present: Provisions, hooked: Set<Int> = []) {
        (outlines, self.starting, self.present, self.hooked) = (chosen, starting, present, hooked)
        all = Provisions(besides: present.others)
        for (index, outline) in chosen.enumerated() {
            all.add(outline)
            if starting.contains(index) { self.present.add(outline) }
        }
    }

    func reason(of index: Int) -> PluginError {
        let name = outlines[index].name
        let reasons = outlines[index].requirements.filter { !$0.isOptional && !present.satisfies($0) }
        // The worst reasons come first: waiting does not resolve a circular requirement or a wrong version.
        if let cycle = cycle(from: index) {
            return PluginError(
                .circularRequirement,
                "\(name) waits because of a circular requirement: \(cycle.joined(separator: " requires ")). Make one "
                    + "of these requirements optional.")
        }
        for requirement in reasons {
            let found = present.versions(for: requirement)
            guard !found.isEmpty else { continue }
            let versions = found.map(\.description).joined(separator: ", ")
            return PluginError(
                .wrongVersion, "\(name) waits: it requires \(requirement), but only \(versions) is available.")
        }
        for requirement in reasons where all.versions(for: requirement).isEmpty {
            return PluginError(
                .missingRequirement,
                "\(name) waits: it requires \(requirement), which is missing. It starts as soon as that is available.")
        }
        guard let requirement = reasons.first else {
            return PluginError(.conflict, "\(name) cannot be served.")
        }
        let versions = all.versions(for: requirement).filter(requirement.versions.contains)
        guard !versions.isEmpty else {
            let others = all.versions(for: requirement).map(\.description).joined(separator: ", ")
            return PluginError(
                .wrongVersion,
                "\(name) waits: it requires \(requirement), but there is only \(others), which itself waits.")
        }
        return PluginError(
            .requirementWaits,
            waitsForHook(index)
                ? "\(name) requires \(requirement), which is starting, and starts after it."
                : "\(name) waits: it requires \(requirement), which itself waits.")
    }

    /// Returns whether a module waits only for hooks that have not returned yet: its own, or those of modules that it
    /// requires.
    func waitsForHook(_ index: Int) -> Bool {
        var known: [Int: Bool] = [:]
        return waitsForHook(index, &known)
    }

    private func waitsForHook(_ index: Int, _ known: inout [Int: Bool]) -> Bool {
        if hooked.contains(index) { return true }
        if hooked.isEmpty { return false }
        if let answer = known[index] { return answer }
        known[index] = false  // In a cycle.
        let unmet = outlines[index].requirements.filter { !$0.isOptional && !present.satisfies($0) }
        let answer =
            !unmet.isEmpty
            && unmet.allSatisfy { requirement in
                outlines.indices.contains { other in
                    !starting.contains(other) && outlines[other].provides(requirement) && waitsForHook(other, &known)
                }
            }
        known[index] = answer
        return answer
    }

    /// Returns the names of the modules in a cycle of requirements that contains a module, beginning and ending with
    /// it; `nil` if there is none.
    private func cycle(from start: Int) -> [String]? {
        var visited: Set<Int> = []
        var paths: [(index: Int, names: [String])] = [(start, [outlines[start].name])]
        while !paths.isEmpty {
            let (index, names) = paths.removeFirst()
            for requirement in outlines[index].requirements where !requirement.isOptional {
                for next in outlines.indices
                where !starting.contains(next) && outlines[next].provides(requirement) {
                    if next == start { return names + [outlines[start].name] }
                    if visited.insert(next).inserted { paths.append((next, names + [outlines[next].name])) }
                }
            }
        }
        return nil
    }
}
