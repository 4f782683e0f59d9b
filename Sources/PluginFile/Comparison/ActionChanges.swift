import PluginABI

extension ModuleManifest.Action {
    /// Returns how the action differs from an older one of the same name: the weight of each difference, and the end of
    /// a sentence that begins with the action.
    func differences(from old: Self) -> [(ManifestChange.Weight, String)] {
        var differences: [(ManifestChange.Weight, String)] = []
        func compare(_ isWorse: Bool, _ worse: String, _ isBetter: Bool, _ better: String) {
            if isWorse { differences.append((.breaking, worse)) }
            if isBetter { differences.append((.addition, better)) }
        }
        compare(!old.isAsync && isAsync, "is asynchronous", old.isAsync && !isAsync, "is synchronous")
        compare(old.isRemote && !isRemote, "is no longer remote", !old.isRemote && isRemote, "is remote")
        for demand in demands where !old.demands.contains(demand) && old.isRemote {
            differences.append((.breaking, "demands “\(demand)” of other programs"))
        }
        for demand in old.demands where !demands.contains(demand) && isRemote {
            differences.append((.addition, "no longer demands “\(demand)”"))
        }
        differences += parameterDifferences(from: old)
        compare(
            old.hasRest && !hasRest, "takes no undeclared parameters", !old.hasRest && hasRest,
            "takes undeclared parameters")
        if result != old.result {
            // Callers that expect any value are content with every kind.
            differences.append(
                (
                    old.result == .any ? .addition : .breaking,
                    "returns \(result.rawValue) instead of \(old.result.rawValue)"
                ))
        }
        if handles != old.handles { differences.append((.addition, "handles other events")) }
        if differences.isEmpty, plain != old.plain { differences.append((.addition, "is declared differently")) }
        return differences
    }

    private func parameterDifferences(from old: Self) -> [(ManifestChange.Weight, String)] {
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
            if now.type != before.type {
                // Every int is a double.
                let isWider = now.type == .any || (before.type == .int && now.type == .double)
                differences.append(
                    (
                        isWider ? .addition : .breaking,
                        "takes \(now.type.rawValue) as \(name) instead of \(before.type.rawValue)"
                    ))
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

    /// The action without what is only for people.
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
