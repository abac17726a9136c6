// What runs are called where several are shown.

import type { Run } from "./data";

/** So many options that differ are named. */
const mostOptions = 3;

/** Runs of one title get the options in which they differ added to it, and where that is not enough a number. */
export function withDistinctTitles(runs: Run[]): Run[] {
  const titles = runs.map((run) => {
    const alike = runs.filter(({ title }) => title === run.title);
    const names = [...run.options.keys()].filter((name) => alike.some(({ options }) => options.get(name) !== run.options.get(name)));
    return [run.title, ...names.slice(0, mostOptions).map((name) => `${name.replace(/^-+/, "")} ${run.options.get(name)}`)].join(", ");
  });
  return runs.map((run, i) => {
    const number = titles.slice(0, i + 1).filter((title) => title === titles[i]).length;
    const isAlone = titles.indexOf(titles[i]) === titles.lastIndexOf(titles[i]);
    return { ...run, title: isAlone ? titles[i] : `${titles[i]}, no. ${number}` };
  });
}
