/// The candidate that `name` is most likely a slip of; nil where none is near.
func closest(to name: String, among candidates: [String]) -> String? {
    let wanted = name.lowercased()
    let ranked = candidates.map { (name: $0, distance: editDistance(wanted, $0.lowercased())) }
    if let best = ranked.min(by: { $0.distance < $1.distance }), best.distance <= max(1, best.name.count / 3) {
        return best.name
    }
    return wanted.count > 3 ? candidates.first { $0.lowercased().hasPrefix(wanted) } : nil
}

/// How many characters must be inserted, removed, replaced or swapped with their neighbour.
func editDistance(_ left: String, _ right: String) -> Int {
    let left = Array(left)
    let right = Array(right)
    if left.isEmpty || right.isEmpty { return max(left.count, right.count) }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
        var current = [row] + Array(repeating: 0, count: right.count)
        for column in 1...right.count {
            let isSame = left[row - 1] == right[column - 1]
            current[column] = min(last[column] + 1, current[column - 1] + 1, last[column - 1] + (isSame ? 0 : 1))
            if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
                current[column] = min(current[column], beforeLast[column - 2] + 1)
            }
        }
        beforeLast = last
        last = current
    }
    return last[right.count]
}
