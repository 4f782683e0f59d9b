import PluginABI

extension ModuleManifest.Action {
    /// Returns how the action differs from an older one of the same name: the weight of each difference, and the end of
    /// a sentence that begins with the action.
    ///
    /// - Parameter types: Compares the types.
    func differences(from old: Self, _ types: inout TypeComparison) -> [(ManifestChange.Weight, String)] {
        var reached: Set<TypeComparison.Pair> = []
        var differences: [(ManifestChange.Weight, String)] = []
        func compare(_ isWorse: Bool, _ worse: String, _ isBetter: Bool, _ better: String) {
            if isWorse { differences.append((.breaking, worse)) }
            if isBetter { differences.append((.addition, better)) }
        }
        compare(!old.isAsync && isAsync, "is asynchronous", old.isAsync && !isAsync, "is synchronous")
        compare(old.isRemote && !isRemote, "is no longer remote", !old.isRemote && isRemote, "is remote")
        compare(
            old.isIdempotent && !isIdempotent, "is no longer idempotent", !old.isIdempotent && isIdempotent,
            "is idempotent")
        for demand in demands where !old.demands.contains(demand) && old.isRemote {
            differences.append((.breaking, "demands “\(demand)” of other programs"))
        }
        for demand in old.demands where !demands.contains(demand) && isRemote {
            differences.append((.addition, "no longer demands “\(demand)”"))
        }
        differences += parameterDifferences(from: old, &types, &reached)
        compare(
            old.hasRest && !hasRest, "takes no undeclared parameters", !old.hasRest && hasRest,
            "takes undeclared parameters")
        if let weight = types.weight(from: old.resultType, to: resultType, .returned, &reached) {
            differences.append((weight, "returns \(resultType.instead(of: old.resultType))"))
        }
        if handles != old.handles { differences.append((.addition, "handles other events")) }
        if differences.isEmpty, plain != old.plain { differences.append((.addition, "is declared differently")) }
        return differences
    }

    private func parameterDifferences(
        from old: Self, _ types: inout TypeComparison, _ reached: inout Set<TypeComparison.Pair>
    ) -> [(ManifestChange.Weight, String)] {
        var differences: [(ManifestChange.Weight, String)] = []
        for (position, before) in old.parameters.enumerated() {
            let name = "“\(before.name.shortened)”"
            guard let place = parameters.firstIndex(where: { $0.name == before.name }) else {
                differences.append((.breaking, "has no parameter \(name)"))
                continue
            }
            let now = parameters[place]
            if place != position {
                differences.append((.breaking, "takes \(name) at position \(place + 1) instead of \(position + 1)"))
            }
            if let weight = types.weight(from: before.declaredType, to: now.declaredType, .passed, &reached) {
                let types =
                    before.declaredType.description == now.declaredType.description
                    ? (now.type.rawValue, before.type.rawValue) : ("\(now.declaredType)", "\(before.declaredType)")
                differences.append((weight, "takes \(types.0) as \(name) instead of \(types.1)"))
            }
            if now.isRequired, !before.isRequired { differences.append((.breaking, "requires \(name)")) }
            if !now.isRequired, before.isRequired { differences.append((.addition, "does not require \(name)")) }
            if now.defaultValue != before.defaultValue, !before.isRequired, !now.isRequired {
                differences.append(
                    (.addition, "has the default \((now.defaultValue ?? .null).json.shortened) for \(name)"))
            }
        }
        for now in parameters where !old.parameters.contains(where: { $0.name == now.name }) {
            let name = "“\(now.name.shortened)”"
            differences.append(now.isRequired ? (.breaking, "requires \(name)") : (.addition, "takes \(name)"))
        }
        return differences
    }

    /// Returns why the types of the action fail callers of an older one: the end of a sentence; `nil` if they do not.
    ///
    /// - Parameter reached: Gets the records and enumerations that the types refer to.
    func typeObstacle(
        insteadOf old: Self, _ types: inout TypeComparison, _ reached: inout Set<TypeComparison.Pair>
    ) -> String? {
        var obstacle: String?
        for (before, now) in zip(old.parameters, parameters)
        where types.weight(from: before.declaredType, to: now.declaredType, .passed, &reached) == .breaking {
            obstacle =
                obstacle
                ?? "its action \(name) takes “\(now.name.shortened)” of type "
                + now.declaredType.instead(of: before.declaredType)
        }
        if types.weight(from: old.resultType, to: resultType, .returned, &reached) == .breaking {
            obstacle = obstacle ?? "its action \(name) returns \(resultType.instead(of: old.resultType))"
        }
        return obstacle
    }

    /// The action without its summaries, which are only for people.
    var plain: Self {
        var plain = self
        plain.summary = ""
        plain.parameters = parameters.map { parameter in
            var parameter = parameter
            parameter.summary = ""
            return parameter
        }
        return plain
    }
}
