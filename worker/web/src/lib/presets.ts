// Questions that people ask the assistant about a run, ready to edit and send.

export interface Preset { readonly title: string; readonly what: string; readonly prompt: string }

const AREA = (source: string, language: string) => `The source tree is in ${source}${language ? ` and mostly ${language}` : ""}. See what was changed with \`git diff\`.`;

/** The presets for a run; the first one needs a reference patch. */
export function presetsFor(source: string, language: string, reference: string): Preset[] {
    const area = AREA(source || "/src", language);
    const list: Preset[] = [
        { title: "Analyze Bug Fix Quality", what: "root cause, missed cases, regressions, tests",
            prompt: `${area}\n\nJudge the quality of this bug fix. Is the root cause addressed or only a symptom? Which cases are missed? Does it follow the habits of this code base? Could it break something else? Which tests would you add?` },
        { title: "Review Code Changes", what: "readability, bugs, speed, security",
            prompt: `${area}\n\nReview these changes as you would for a colleague: readability, bugs, speed, security. Name file and line for each remark.` },
        { title: "Suggest Improvements", what: "concrete changes, alternatives, simplification",
            prompt: `${area}\n\nSuggest concrete improvements to these changes: simpler ways, alternatives and what they would cost. Show the code you would write.` },
        { title: "Explain Changes", what: "what changed and why, for someone new",
            prompt: `${area}\n\nExplain what was changed and why to somebody who has not seen this bug before.` },
        { title: "Find Potential Issues", what: "logic, security, leaks, races, errors",
            prompt: `${area}\n\nLook for problems in these changes: logic, security, leaks, races, error handling, broken interfaces. Say how likely each one is.` },
    ];
    if (reference.trim()) list.unshift({
        title: "Compare Agent Fix with Ground Truth", what: "differences to the reference patch",
        prompt: `${area}\n\nCompare the agent's fix with the reference patch below. Where do they differ, which differences matter, and does the agent's fix hold in all cases that the reference covers?\n\n\`\`\`diff\n${reference}\n\`\`\`` });
    return list;
}
