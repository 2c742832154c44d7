import "./tokens.css";
import "./base.css";
import "./layout.css";
