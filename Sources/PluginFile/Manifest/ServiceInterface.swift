import PluginABI

// The conditions under which a target, or another version of a service, can serve the callers of an interface. Types
// are compared by kind.

extension ModuleManifest.Action {
    /// Returns why callers of `promised` could fail with this action in its place: the end of a sentence; `nil` if they
    /// could not.
    fileprivate func obstacle(insteadOf promised: Self) -> String? {
        if isAsync, !promised.isAsync { return "its action \(name) is asynchronous" }
        for (index, expected) in promised.parameters.enumerated() {
            guard index < parameters.count, parameters[index].name == expected.name else {
                let isThere = parameters.contains { $0.name == expected.name }
                return "its action \(name) has "
                    + (isThere
                        ? "the parameter \(expected.name) at a position other than \(index + 1)"
                        : "no parameter \(expected.name)")
            }
            let own = parameters[index]
            if own.type != expected.type, own.type != .any {
                return "the parameter \(own.name) of its action \(name) is of type \(own.type.rawValue), not "
                    + expected.type.rawValue
            }
            if own.isRequired, !expected.isRequired { return "its action \(name) requires the parameter \(own.name)" }
        }
        if let other = parameters.dropFirst(promised.parameters.count).first(where: \.isRequired) {
            return "its action \(name) requires another parameter, \(other.name)"
        }
        if promised.isIdempotent, !isIdempotent { return "its action \(name) is not idempotent" }
        if promised.hasRest, !hasRest { return "its action \(name) takes no rest" }
        if result != promised.result, promised.result != .any {
            return "the result of its action \(name) is of type \(result.rawValue), not \(promised.result.rawValue)"
        }
        return nil
    }
}

extension [ModuleManifest.Action] {
    /// Returns why these actions do not fulfil an interface: the end of a sentence; `nil` if they do.
    package func obstacle(to interface: [ModuleManifest.Action]) -> String? {
        let own = Dictionary(map { ($0.name, $0) }) { first, _ in first }
        for promised in interface {
            guard let action = own[promised.name] else { return "it has no action \(promised.name)" }
            if let obstacle = action.obstacle(insteadOf: promised) { return obstacle }
        }
        return nil
    }
}

/// One of several implementations of a service.
package struct ServiceOffer: Sendable {
    package let service: ModuleManifest.Service
    /// The module or file that offers it, for messages.
    package let owner: String
    /// The actions that callers may use; `nil` if they are not known.
    private let actions: [ModuleManifest.Action]?

    /// - Parameter target: The target that implements the service; `nil` if it is not known.
    package init(_ service: ModuleManifest.Service, by target: ModuleManifest.Target?, owner: String) {
        (self.service, self.owner) = (service, owner)
        actions = service.interface ?? target?.actions
    }

    /// Returns why callers of the lower version could fail if the higher one served in its place; `nil` if they could
    /// not, or if the versions do not stand for the same interface. Either implementation may be the higher one; if the
    /// versions are equal, each can serve in place of the other.
    package func conflict(with other: ServiceOffer) -> String? {
        let (own, others) = (service.version, other.service.version)
        guard own.hasInterface(of: others) else { return nil }
        return (own >= others ? obstacle(insteadOf: other) : nil)
            ?? (others >= own ? other.obstacle(insteadOf: self) : nil)
    }

    private func obstacle(insteadOf older: ServiceOffer) -> String? {
        guard let interface = older.service.interface, let obstacle = actions?.obstacle(to: interface) else {
            return nil
        }
        return
            "\(service.name) \(service.version) of \(owner) does not fulfil the interface of version "
            + "\(older.service.version) of \(older.owner): \(obstacle)"
    }
}

extension SemanticVersion {
    /// Returns whether, by the rules of Semantic Versioning, both versions stand for the same interface, apart from
    /// additions: they have the same major version, and for 0.x the same minor version, and are not prereleases.
    fileprivate func hasInterface(of other: SemanticVersion) -> Bool {
        major == other.major && (major > 0 || minor == other.minor) && prerelease.isEmpty && other.prerelease.isEmpty
    }
}
