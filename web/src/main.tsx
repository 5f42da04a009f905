import "./style/index.css";
import { render } from "preact";
import { followForEver } from "./connection";
import { keepMatching } from "./narrowing";
import { App } from "./views/App";

render(<App />, document.body);
keepMatching();
void followForEver();
